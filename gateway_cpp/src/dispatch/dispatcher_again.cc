// Those that were admitted before and need another replica: they go before all that wait for their
// first one.
#include <algorithm>
#include <utility>

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

namespace {

// Who of those that were admitted before goes first: clients that were reading, those that have
// seen nothing, and those that read on meanwhile.
int rank(const PlaceRequest& ask) { return ask.runs_on ? 2 : ask.continues != 0 ? 0 : 1; }

}  // namespace

bool Dispatcher::again(Turn& turn, const PlaceRequest& ask,
                       std::vector<routing::ReplicaId> excluded, const MakeWaker& waker) {
  Wakers wakers;
  const auto enter = [&] {
    const std::lock_guard lock(mutex_);
    hand_out_again(wakers);  // of what time alone has opened
    Place place = reserve_before_shadows(ask, excluded, true, wakers);
    if (place) {
      charge(place, ask);
      give(turn, std::move(place));
      return true;
    }
    if (!may_wait_again(ask, excluded)) return false;
    turn.excluded_ = std::move(excluded);
    enroll(turn, ask, waker);
    wait_again(turn);
    return true;
  };
  const bool entered = enter();
  for (const auto& waker : wakers) waker->wake();
  return entered;
}

bool Dispatcher::may_wait_again(const PlaceRequest& ask,
                                std::span<const routing::ReplicaId> excluded) const {
  if (ask.continues != 0) return true;
  if (ask.rest && !replicas_.has_rest(excluded)) return false;
  return ready_besides(excluded);
}

void Dispatcher::wait_again(Turn& turn) {
  turn.retries_ = true;
  retry_work_ += turn.work;
  const auto at = std::ranges::upper_bound(retries_, rank(*turn.ask_), {},
                                           [](const Turn* one) { return rank(*one->ask_); });
  retries_.insert(at, &turn);
}

void Dispatcher::hand_out_again(Wakers& wakers) {
  std::uint32_t full = 0;  // the config whose replicas have no room: many may wait for these
  std::erase_if(retries_, [&](Turn* turn) {
    const std::uint32_t config = turn->ask_->continues;
    if (!has_room_for_waiting() || (config != 0 && config == full)) return false;
    Place place = reserve_for(*turn, turn->excluded_);
    if (!place) {
      if (config != 0 && !replicas_.has_room_to_continue(config)) full = config;
      return false;
    }
    retry_work_ -= turn->work;
    charge(place, *turn->ask_);
    give(*turn, std::move(place), wakers);
    return true;
  });
}

// How long those wait that go on with an answer depends on whether there is anybody to wait for.
void Dispatcher::tell_of_equals(Wakers& wakers) {
  const std::uint64_t changes = replicas_.equals_changes();
  if (std::exchange(equals_changes_, changes) == changes) return;
  for (const Turn* turn : retries_) {
    if (turn->ask_->continues != 0) wakers.push_back(turn->waker_);
  }
}

}  // namespace penstock::dispatch
