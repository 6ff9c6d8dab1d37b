// Who of a deployment's requests runs next, and on which replica: its queue, what is known of its
// replicas' load, and the policy that chooses among them, under one lock. Whether there is a place
// and that it is taken are one step, so no limit is looked at and then overrun, whatever threads
// ask; a place that is given back goes to who waits before anybody else can have it.
//
// One for each deployment uid, shared by all I/O threads; it outlives snapshots. Every method may
// be called from any thread and returns without waiting for more than the lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "admission/appointments.h"
#include "admission/decision.h"
#include "admission/fair_queue.h"
#include "admission/token_estimate.h"
#include "admission/wait_model.h"
#include "admission/wait_slack.h"
#include "base/availability.h"
#include "base/clock.h"
#include "dispatch/leg_place.h"
#include "dispatch/queue_turn.h"
#include "dispatch/shadow_place.h"
#include "dispatch/turn.h"
#include "routing/replica_set.h"
#include "routing/route_snapshot.h"

namespace penstock::dispatch {

// How a deployment stands, for status pages and reports.
struct DeploymentStanding {
  std::uint32_t replicas = 0;
  std::uint32_t usable = 0;  // of these, ready ones that nothing speaks against
  std::uint32_t queued = 0;
  std::uint32_t broken = 0;                     // answers that wait to go on at another replica
  std::uint32_t moving = 0;                     // likewise, which run on where they are
  std::chrono::milliseconds estimated_wait{0};  // of a request of normal priority that came now
  routing::Ejections ejections{};
};

// What a request will cost, before anybody has counted its tokens.
struct Appraisal {
  admission::TokenEstimate estimate;
  std::uint32_t least_prompt = 0;  // tokens that its prompt has at least
};

// What a request turned out to cost.
struct Cost {
  std::size_t body_bytes = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

// What an ask came to.
struct Admission {
  std::optional<admission::Refusal> refusal;
  QueueTurn turn = {};
};

// A replica as a router program is told of it.
struct Engine {
  std::shared_ptr<routing::Replica> replica;
  routing::Role role = routing::Role::kNone;
  bool moves_kv = false;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint64_t waiting_tokens = 0;
  float kv_usage = 0;
  std::uint32_t places_left = 0;
  std::uint32_t generating = 0;  // calls of this gateway
};

class Dispatcher final : public std::enable_shared_from_this<Dispatcher> {
 public:
  // seed: of the random choices that policies make.
  Dispatcher(const base::Clock& clock, routing::GatewayPlace place, std::uint64_t seed)
      : clock_(clock), replicas_(std::move(place), seed) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // The deployment and its replicas as the newest snapshot has them. Who waits may get a place.
  void follow(const routing::DeploymentRoute& route,
              std::span<const routing::ReplicaRoute> replicas);
  // The deployment has left the routes: who waits is told, by having a place that is none.
  void close();

  // ---- for requests

  Appraisal appraise(std::size_t body_bytes, std::optional<std::uint64_t> max_tokens,
                     std::uint64_t choices) const;
  // A new request: it gets a place at once (turn.has_place()), waits, or is refused. `ask` outlives
  // the turn; the waker is called once a place is given to it later,
  // and when the last ready replica goes: then it may be better off elsewhere.
  Admission admit(Turn& turn, const PlaceRequest& ask, const admission::DeploymentAsk& asked,
                  const MakeWaker& waker);
  // Another deployment answers a request that was refused here: it does not come back.
  void answered_elsewhere(const PlaceRequest& ask);
  // Whether those that another one takes are sent away for the wait: admission::turns_away.
  bool turns_away() const { return turns_away_.load(std::memory_order_relaxed); }
  // What one is told that has waited for as long as it may. It has left its turn.
  admission::Refusal deadline_over(const PlaceRequest& ask, std::chrono::milliseconds waited);
  // One that was admitted asks again, for another replica than these: it has kept its turn, and
  // goes before all that wait for their first. False: no replica besides those is ready. One that
  // goes on with an answer waits nevertheless, and its waker is called when such a replica comes or
  // goes, too.
  bool again(Turn& turn, const PlaceRequest& ask, std::vector<routing::ReplicaId> excluded,
             const MakeWaker& waker);

  // A place on another replica than these for what is repeated for our own sake. False: somebody
  // waits, or none has room. It is given up, and the waker called, before a request has to wait.
  bool place_shadow(ShadowPlace& place, const PlaceRequest& ask,
                    std::span<const routing::ReplicaId> excluded, std::shared_ptr<Waker> waker);

  // ---- for canaries of a revision

  // Whether the request is for the revision of that digest, be it there or not.
  bool is_for(const std::string& digest, const PlaceRequest& ask);
  bool is_of(const routing::Replica& replica, const std::string& digest) const;
  // Whether a replica besides these serves that is of no revision with a share.
  bool has_rest(std::span<const routing::ReplicaId> excluded) const;

  // ---- for router programs

  // Those that run the same template as this one, and that nothing speaks against, by their ids.
  std::vector<Engine> engines_like(const routing::Replica& one) const;
  bool is_sound(const routing::Replica& replica) const;
  // A place goes to that replica, if it has room, which is told there.
  bool move(Place& place, const routing::ReplicaId& to, routing::Pick* pick = nullptr);
  // None: it has no room.
  LegPlace place_leg(const routing::ReplicaId& at);

  // ---- what becomes of replicas

  void report(routing::Replica& replica, const routing::LoadReport& load);
  // The doubt that it brought; 0: none.
  std::chrono::milliseconds note_failure(routing::Replica& replica, routing::Failure failure);
  // It answered a call whole, which cost so much: the next estimates are the better for it.
  void note_answer(routing::Replica& replica, const Cost& cost,
                   const admission::TokenEstimate& told);
  // It speaks again after its process was lost.
  void note_back(routing::Replica& replica);
  // Grows when what streams are told of a replica changes: Replica::word(). Takes no lock.
  std::uint64_t words() const { return replicas_.words(); }
  // Time alone ends doubts and begins others. About ten times a second.
  void advance();

  // ---- for pages, reports and messages

  std::vector<std::shared_ptr<routing::Replica>> replicas() const;
  // Those that are ready, whatever speaks against them.
  std::vector<std::shared_ptr<routing::Replica>> ready_replicas() const;
  DeploymentStanding standing() const;
  std::vector<routing::Doubt> doubts() const;
  // Whether any replica besides these is ready.
  bool is_ready_besides(std::span<const routing::ReplicaId> excluded) const;
  // Whether any besides these is ready to go on with answers of that Place::config(), and nothing
  // speaks against it, whatever its room.
  bool is_ready_to_continue(std::uint32_t config,
                            std::span<const routing::ReplicaId> excluded) const;
  // Whether requests go to any replica, it may cost something yet, and a ready one can hold the
  // adapter, where one is named.
  bool is_usable_for(std::string_view adapter);
  // Whether requests go to any besides this one.
  bool another_is_usable(const routing::ReplicaId& besides);

 private:
  friend class LegPlace;
  friend class Place;
  friend class ShadowPlace;
  friend class Turn;
  using Wakers = std::vector<std::shared_ptr<Waker>>;

  Admission place_or_turn(Turn& turn, const PlaceRequest& ask,
                          const admission::DeploymentAsk& asked, const MakeWaker& waker,
                          Wakers& wakers);
  std::uint32_t queued_before(const routing::Counts& counts) const;
  admission::DeploymentLoad load_for(const PlaceRequest& ask) const;
  QueueTurn turn_of(const PlaceRequest& ask, const admission::DeploymentLoad& load) const;
  void note_wait(const PlaceRequest& ask, const admission::DeploymentAsk& asked,
                 const admission::DeploymentLoad& load);
  void note_waited(const Turn& turn);
  bool is_out_of_budget() const;
  void leave_room(admission::DeploymentLoad& load, const PlaceRequest& ask,
                  std::uint32_t max_queued);
  admission::Refusal send_away(admission::Refusal refusal, std::chrono::milliseconds wait,
                               const PlaceRequest& ask);
  std::uint64_t work_before(std::string_view tenant, base::Priority priority) const;
  std::chrono::milliseconds wait_for(std::string_view tenant, base::Priority priority) const;
  std::chrono::milliseconds longest_wait(const PlaceRequest& ask,
                                         std::chrono::milliseconds estimated) const;
  Place reserve(const PlaceRequest& ask, std::span<const routing::ReplicaId> excluded,
                bool patient);
  Place reserve_for(const Turn& turn, std::span<const routing::ReplicaId> excluded);
  static std::chrono::milliseconds patience_of(const routing::Limits& limits);
  void charge(Place& place, const PlaceRequest& ask);
  void enroll(Turn& turn, const PlaceRequest& ask, const MakeWaker& waker);
  bool may_wait_again(const PlaceRequest& ask, std::span<const routing::ReplicaId> excluded) const;
  void wait_again(Turn& turn);
  bool goes_ahead(const Turn& turn) const;
  void count_ahead(Turn& turn, bool ahead);
  void hand_out_again(Wakers& wakers);
  static void give(Turn& turn, Place place);
  static void give(Turn& turn, Place place, Wakers& wakers);
  bool has_room_for_waiting();
  std::uint32_t queued() const;
  std::uint32_t continuing(bool runs_on) const;
  bool ready_besides(std::span<const routing::ReplicaId> excluded) const;
  Wakers hand_out();
  void tell_if_none_is_left(Wakers& wakers);
  void tell_of_equals(Wakers& wakers);
  static bool is_needed(const routing::Replica& replica);
  void give_up(ShadowPlace& place, Wakers& wakers);
  void make_room(Wakers& wakers);
  Place reserve_before_shadows(const PlaceRequest& ask,
                               std::span<const routing::ReplicaId> excluded, bool patient,
                               Wakers& wakers);
  void leave_to_others(const routing::Replica& replica, Wakers& wakers);
  void tell_move(const routing::Replica& to, routing::Pick& pick) const;
  std::shared_ptr<routing::Replica> reserve_at(const routing::ReplicaId& id,
                                               routing::ReplicaSet::What what, Wakers& wakers);
  void release(LegPlace& place);
  void release(ShadowPlace& place);
  void release(Place& place);
  void leave(Turn& turn);

  const base::Clock& clock_;
  mutable std::mutex mutex_;  // guards all below, and what turns in the queue have
  routing::ReplicaSet replicas_;
  admission::FairQueue queue_;
  std::vector<Turn*> retries_;  // that wait for another replica than those they were sent to
  struct {
    std::uint32_t waiting = 0;
    admission::FairQueue::ByPriority of{};
    std::uint64_t work = 0;
  } ahead_;                            // of these, those that go before newcomers
  std::uint64_t equals_changes_ = 0;   // of the replicas, that these were told of
  std::vector<ShadowPlace*> shadows_;  // that have a place each; none while anybody waits
  admission::WaitModel wait_;
  admission::WaitSlack slack_;
  admission::Appointments appointments_;  // of those that were refused for want of a place
  admission::TokenEstimator tokens_;
  std::uint32_t in_flight_ = 0;  // places that are held
  std::uint32_t ready_ = 0;      // replicas, when it was last looked at
  base::SteadyTime lost_at_{};   // when there were last fewer of them
  base::Availability availability_ = base::Availability::kUnknown;
  base::WallTime expected_ready_at_{};
  std::chrono::milliseconds patience_{0};  // of those that wait for their revision
  bool budget_used_up_ = false;
  base::WallTime budget_resets_at_{};
  std::atomic<bool> turns_away_{false};  // written under the lock
  std::string away_tenant_;              // of whom it was said last
  base::Priority away_priority_ = base::Priority::kNormal;
};

}  // namespace penstock::dispatch
