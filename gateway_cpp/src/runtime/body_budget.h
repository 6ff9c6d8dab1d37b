// How many bytes of bodies the gateway may hold at once, over all connections and threads, and each
// body's share of that. A share grows as its body comes and is given back with it: what is only
// announced costs nobody anything. Requests and answers have a budget each: a request's body is
// held until its answer is made, and would wait for itself where both shared one.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace penstock::runtime {

// Owned by main; any thread.
class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes) : total_(bytes), free_(bytes) {}
  BodyBudget(const BodyBudget&) = delete;
  BodyBudget& operator=(const BodyBudget&) = delete;

  // What it is when nobody holds anything.
  size_t total() const { return total_; }
  // What bodies hold of it now.
  size_t held() const { return total_ - free_.load(std::memory_order_relaxed); }
  // All of them or none. Whoever gets what another thread gave back comes after it.
  bool take(size_t bytes) {
    size_t free = free_.load(std::memory_order_relaxed);
    while (free >= bytes) {
      if (free_.compare_exchange_weak(free, free - bytes, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void give_back(size_t bytes) { free_.fetch_add(bytes, std::memory_order_release); }

 private:
  const size_t total_;
  std::atomic<size_t> free_;
};

// What one body holds of the budget. Moves with its body.
class BodyShare {
 public:
  BodyShare() = default;
  explicit BodyShare(BodyBudget& budget) : budget_(&budget) {}
  BodyShare(BodyShare&& other) noexcept { swap(other); }
  BodyShare& operator=(BodyShare&& other) noexcept {
    BodyShare taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~BodyShare() {
    if (budget_ != nullptr) budget_->give_back(bytes_);
  }

  size_t bytes() const { return bytes_; }
  // False: there is no room for so many now, and the share is as it was.
  bool grow_to(size_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_->take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  // Gives back what is over so many bytes.
  void shrink_to(size_t bytes) {
    if (bytes >= bytes_) return;
    budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  void swap(BodyShare& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
  }

  BodyBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace penstock::runtime
