// A value that is replaced as a whole while many threads read it: whoever holds one has it as it
// was.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace penstock::base {

template <class T>
class Published {
 public:
  using Value = T;

  explicit Published(std::shared_ptr<const T> first) : current_(std::move(first)) {}

  // Any thread; takes a short lock. On the request path use a Reader.
  std::shared_ptr<const T> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  // Grows each time it is replaced: a cheap way to ask "anything new?". Any thread.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // A thread's own view of it: one atomic load when nothing changed. One for each thread.
  class Reader {
   public:
    explicit Reader(const Published& published) : published_(published) {}

    // The reference holds until the next read() on this reader: copy it across suspension points.
    const std::shared_ptr<const T>& read() {
      const std::uint64_t generation = published_.generation();
      if (!value_ || generation != generation_) {
        value_ = published_.current();
        generation_ = generation;
      }
      return value_;
    }

   private:
    const Published& published_;
    std::uint64_t generation_ = 0;
    std::shared_ptr<const T> value_;
  };

 protected:
  // One thread at a time.
  void publish(std::shared_ptr<const T> next) {
    {
      const std::lock_guard lock(mutex_);
      current_.swap(next);  // the old one goes after the lock
    }
    generation_.fetch_add(1, std::memory_order_release);
  }

 private:
  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<const T> current_;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace penstock::base
