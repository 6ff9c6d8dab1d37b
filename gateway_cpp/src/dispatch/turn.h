// One request's wait for a place, and the place that it gets. Both belong to the request; what the
// dispatcher touches of them is guarded by its lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/fair_queue.h"
#include "admission/token_estimate.h"
#include "admission/wait_model.h"
#include "base/clock.h"
#include "base/priority.h"
#include "routing/replica_set.h"

namespace penstock::dispatch {

class Dispatcher;

// Tells a request that waits that it was given a place, or that no replica is left. Called from
// whatever thread knows it, without any lock.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
};

// Makes one for a request that has to wait: most never do.
using MakeWaker = std::function<std::shared_ptr<Waker>()>;

// A call that counts on a replica, from the decision to send it there to its end. Move only; going
// away gives the place back, exactly once, and lets the next in the queue have it.
class Place {
 public:
  Place() = default;
  Place(Place&& other) noexcept { *this = std::move(other); }
  Place& operator=(Place&& other) noexcept;
  ~Place() { release(); }

  explicit operator bool() const { return replica_ != nullptr; }
  const std::shared_ptr<routing::Replica>& replica() const { return replica_; }
  // What the call really cost, in the unit of TokenEstimate::work(); the estimate stands without.
  void worked(std::uint64_t work) { work_ = work; }
  // Its time says nothing of how long calls take: it failed, or nobody wanted it any more.
  void cut_short() { counts_ = false; }
  // The replica was lost with the call: nobody else is to be given its place before that is known.
  void lost() { lost_ = true; }
  // The number of its replica's config_hash as it was when the place was given: what can go on with
  // its answer. 0: nothing can.
  std::uint32_t config() const { return config_; }
  void release();

 private:
  friend class Dispatcher;

  std::shared_ptr<Dispatcher> dispatcher_;
  std::shared_ptr<routing::Replica> replica_;
  std::string tenant_;
  base::Priority priority_ = base::Priority::kNormal;
  std::uint32_t config_ = 0;
  admission::Charge charged_;
  std::uint64_t work_ = 0;
  admission::WaitModel::Run run_ = 0;
  bool counts_ = true;
  bool lost_ = false;
};

// What a request brings to the decision who runs next and where. Outlives its turn.
struct PlaceRequest {
  std::string tenant;  // empty: whoever comes without a key
  base::Priority priority = base::Priority::kNormal;
  bool rest = false;  // it is for no revision that has a share of its own
  // It has its answer from where it is until it has this place: those that have none go first.
  bool runs_on = false;
  // Place::config() of where the answer began that it goes on with; 0: it begins.
  std::uint32_t continues = 0;
  std::uint32_t delivered = 0;  // tokens of that answer: they are read as the prompt is
  admission::TokenEstimate estimate;
  std::string adapter;                // "name@version"; empty: the base model
  std::uint64_t session = 0;          // hash of what it is sticky by; 0: nothing
  std::uint64_t share = 0;            // hash by which canaries have their shares; 0: none have any
  std::string_view key;               // id of its API key; empty: none
  std::string_view body;              // by which, with tenant and key, a retry of it is known
  std::vector<std::uint64_t> prefix;  // chained hashes of its prefix's blocks
  // Where the choice of its place is told, before that is given; null: nowhere. Outlives the turn.
  routing::Pick* pick = nullptr;

  // In the unit of TokenEstimate::work().
  std::uint64_t work() const {
    const std::uint32_t done = std::min(delivered, estimate.completion);
    return admission::TokenEstimate::work_of(std::uint64_t{estimate.prompt} + delivered,
                                             estimate.completion - done);
  }
};

// A request's turn with one deployment. It stays where it is; going away gives up whatever it has.
class Turn final : private admission::QueueEntry {
 public:
  Turn() = default;
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { leave(); }

  // It was given a place that was not taken yet. The owner's thread, as all of these.
  bool has_place() const { return granted_.load(std::memory_order_acquire); }
  // The place that it was given; none: it was given none, and waits no more.
  Place take();
  // It waits no more, and what it was given goes to others, unused.
  void leave();

 private:
  friend class Dispatcher;

  std::shared_ptr<Dispatcher> dispatcher_;  // whose queue it is in, or was given a place by
  std::shared_ptr<Waker> waker_;
  const PlaceRequest* ask_ = nullptr;
  std::vector<routing::ReplicaId> excluded_;
  std::chrono::milliseconds estimated_{0};  // wait that is to be compared with the real; 0: none
  bool retries_ = false;                    // it was admitted before, and waits with those alone
  bool ahead_ = false;                      // of these, it goes before newcomers
  Place place_;
  std::atomic<bool> granted_{false};
};

}  // namespace penstock::dispatch
