// What this gateway itself knows of one replica: calls in flight, the load it last reported, and a
// short-lived doubt (down-mark). Shared by all I/O threads through atomics, and by every route
// table that still names the replica: it outlives snapshots, so counts survive a swap.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "routing/ejection.h"

namespace penstock::routing {

class ReplicaTracker {
 public:
  ReplicaTracker() = default;
  ReplicaTracker(const ReplicaTracker&) = delete;
  ReplicaTracker& operator=(const ReplicaTracker&) = delete;

  std::uint32_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

  // Our own calls plus what the replica said it has from elsewhere.
  std::uint32_t load() const { return in_flight() + elsewhere_.load(std::memory_order_relaxed); }

  // Heard on WatchLoad: calls running and waiting in its engine. Our own are among them.
  void report(std::uint32_t running, std::uint32_t waiting);

  // What the replica itself last said: it takes calls, or it is starting or draining, which the
  // routes may not know yet.
  enum class Serving : std::uint8_t { kYes, kNo };
  void set_serving(Serving serving) { serving_.store(serving, std::memory_order_relaxed); }
  bool is_serving() const { return serving_.load(std::memory_order_relaxed) == Serving::kYes; }

  // Doubts the replica until `until`: other replicas are preferred. A later end wins.
  void mark_down(base::SteadyTime until);
  // A call on it failed through no fault of the client's. While it is doubted already nothing is
  // added: the many calls that a death takes along are one failure. Returns the doubt that this
  // brought; 0: none.
  std::chrono::milliseconds note_failure(Blame blame, base::SteadyTime now);
  // It answered a call whole, or came back: doubt is over and failures begin anew.
  void mark_up();
  bool is_down(base::SteadyTime now) const;

 private:
  friend class InFlight;
  std::atomic<std::uint32_t> in_flight_{0};
  std::atomic<std::uint32_t> elsewhere_{0};
  std::atomic<Serving> serving_{Serving::kYes};
  std::atomic<std::int64_t> down_until_{0};  // steady clock, nanoseconds; 0: not down
  std::atomic<std::uint32_t> failures_{0};   // in a row
};

// One call counted on a replica for as long as this lives. Move only.
class InFlight {
 public:
  InFlight() = default;
  explicit InFlight(std::shared_ptr<ReplicaTracker> tracker) : tracker_(std::move(tracker)) {
    if (tracker_) tracker_->in_flight_.fetch_add(1, std::memory_order_relaxed);
  }
  InFlight(InFlight&& other) noexcept : tracker_(std::exchange(other.tracker_, nullptr)) {}
  InFlight& operator=(InFlight&& other) noexcept {
    if (this != &other) {
      release();
      tracker_ = std::exchange(other.tracker_, nullptr);
    }
    return *this;
  }
  ~InFlight() { release(); }

  void release() {
    if (auto tracker = std::exchange(tracker_, nullptr)) {
      tracker->in_flight_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

 private:
  std::shared_ptr<ReplicaTracker> tracker_;
};

}  // namespace penstock::routing
