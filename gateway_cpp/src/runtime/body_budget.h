// How many bytes of bodies the gateway may hold at once, over all connections and threads, and each
// body's share of that. A share grows as its body comes and is given back with it: what is only
// announced costs nobody anything. Requests and answers have a budget each: a request's body is
// held until its answer is made, and would wait for itself where both shared one.
//
// Each client has a part of the budget for all its bodies together, so that it can use up its own
// and nobody else's.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace penstock::runtime {

class RoomWait;

// Owned by main; any thread.
class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes) : BodyBudget(bytes, bytes) {}
  // `each`: what one client may hold of it.
  BodyBudget(size_t bytes, size_t each) : total_(bytes), each_(each), free_(bytes) {}
  BodyBudget(const BodyBudget&) = delete;
  BodyBudget& operator=(const BodyBudget&) = delete;

  // What it is when nobody holds anything.
  size_t total() const { return total_; }
  // What bodies hold of it now.
  size_t held() const { return total_ - free_.load(std::memory_order_relaxed); }
  // All of them or none. Whoever gets what another thread gave back comes after it.
  bool take(size_t bytes) {
    size_t free = free_.load();
    while (free >= bytes) {
      if (free_.compare_exchange_weak(free, free - bytes, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Whoever waits for room finds it: either it is seen to wait here, or it sees what came back.
  void give_back(size_t bytes) {
    free_.fetch_add(bytes);
    if (waiting_.load() > 0) wake();
  }

  // A client's part: the same for all who ask by that name while one of them has it.
  std::shared_ptr<BodyBudget> part_of(std::string_view client);

 private:
  friend class RoomWait;

  // True: what it waits for may have come before it was known to wait, or since it was woken.
  bool enlist(RoomWait& wait, size_t bytes);
  void strike(RoomWait& wait);
  void wake();
  void wake_locked();
  void forget_unused();

  const size_t total_;
  const size_t each_;
  std::atomic<size_t> free_;
  std::atomic<size_t> waiting_{0};
  std::mutex mutex_;  // guards all below
  std::list<RoomWait*> waits_;
  std::unordered_map<std::string, std::weak_ptr<BodyBudget>> parts_;
  size_t forget_at_ = 64;  // parts
};

// What one body holds of the budget, and of its client's part. Moves with its body.
class BodyShare {
 public:
  BodyShare() = default;
  // `part`: of the client's; null: there is none.
  explicit BodyShare(BodyBudget& budget, std::shared_ptr<BodyBudget> part = nullptr)
      : budget_(&budget), part_(std::move(part)) {}
  BodyShare(BodyShare&& other) noexcept { swap(other); }
  BodyShare& operator=(BodyShare&& other) noexcept {
    BodyShare taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~BodyShare() { shrink_to(0); }

  size_t bytes() const { return bytes_; }
  // Of as much again, for a copy of the body; nothing: there is no room for one.
  std::optional<BodyShare> again() const {
    if (budget_ == nullptr) return BodyShare();  // nothing is counted
    BodyShare copy(*budget_, part_);
    if (!copy.grow_to(bytes_)) return std::nullopt;
    return copy;
  }
  // False: there is no room for so many now, and the share is as it was.
  bool grow_to(size_t bytes) {
    if (bytes <= bytes_) return true;
    lacks_ = bytes - bytes_;
    lacks_own_ = false;
    if (!budget_->take(bytes - bytes_)) return false;
    lacks_own_ = part_ && !part_->take(bytes - bytes_);
    if (lacks_own_) {
      budget_->give_back(bytes - bytes_);
      return false;
    }
    bytes_ = bytes;
    return true;
  }
  // The last time that there was no room, it was its client's own that was used up.
  bool lacks_own() const { return lacks_own_; }
  // The bytes that there was no room for then, and where.
  size_t lacks() const { return lacks_; }
  BodyBudget& lacking() const { return lacks_own_ ? *part_ : *budget_; }
  // Its client's; null: there is none.
  const BodyBudget* part() const { return part_.get(); }
  // Gives back what is over so many bytes.
  void shrink_to(size_t bytes) {
    if (bytes >= bytes_) return;
    if (part_) part_->give_back(bytes_ - bytes);
    budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }

 private:
  void swap(BodyShare& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(part_, other.part_);
    std::swap(bytes_, other.bytes_);
    std::swap(lacks_, other.lacks_);
    std::swap(lacks_own_, other.lacks_own_);
  }

  BodyBudget* budget_ = nullptr;
  std::shared_ptr<BodyBudget> part_;
  size_t bytes_ = 0;
  size_t lacks_ = 0;
  bool lacks_own_ = false;
};

}  // namespace penstock::runtime
