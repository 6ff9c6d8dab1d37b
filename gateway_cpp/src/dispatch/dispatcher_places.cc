// Places on replicas: how they are taken, and given back.
#include <algorithm>
#include <utility>

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

using std::chrono::milliseconds;

Place Dispatcher::reserve(const PlaceRequest& ask, std::span<const routing::ReplicaId> excluded,
                          bool patient) {
  const auto now = clock_.steady_now();
  const routing::Traits traits{.adapter = ask.adapter,
                               .session = ask.session,
                               .share = ask.share,
                               .rest = ask.rest,
                               .patient = patient,
                               .continues = ask.continues,
                               .runs_on = ask.runs_on,
                               .prefix = ask.prefix,
                               .excluded = excluded};
  Place place;
  place.replica_ = replicas_.reserve(traits, now, ask.pick);
  if (!place) return place;
  place.tenant_ = ask.tenant;
  place.priority_ = ask.priority;
  place.work_ = ask.work();
  place.config_ = place.replica_->config();
  ++in_flight_;
  place.run_ = wait_.started(place.work_, now);
  place.dispatcher_ = shared_from_this();  // from here on it gives itself back
  return place;
}

void Dispatcher::charge(Place& place, const PlaceRequest& ask) {
  place.charged_ = queue_.charge(ask.tenant, ask.priority, place.work_);
}

// For one that waits.
Place Dispatcher::reserve_for(const Turn& turn, std::span<const routing::ReplicaId> excluded) {
  return reserve(*turn.ask_, excluded, clock_.steady_now() - turn.since < patience_);
}

// A request is not refused for want of a place at its revision: it goes elsewhere before.
milliseconds Dispatcher::patience_of(const routing::Limits& limits) {
  constexpr milliseconds kWithoutBudget{5'000};
  const auto budget = limits.wait_budget.count() > 0 ? limits.wait_budget : kWithoutBudget;
  return limits.queue_deadline.count() > 0 ? std::min(budget, limits.queue_deadline / 2) : budget;
}

void Dispatcher::release(Place& place) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    const auto now = clock_.steady_now();
    --in_flight_;
    replicas_.release(*place.replica_, now);
    if (place.lost_) replicas_.note_failure(*place.replica_, routing::Failure::kLost, now);
    wait_.ended(place.run_, now, place.counts_);
    queue_.settle(place.tenant_, place.priority_, place.charged_, place.work_);
    wakers = hand_out();
  }
  for (const auto& waker : wakers) waker->wake();
}

}  // namespace penstock::dispatch
