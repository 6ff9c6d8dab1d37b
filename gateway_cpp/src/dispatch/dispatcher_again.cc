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
  count_ahead(turn, goes_ahead(turn));
  const auto at = std::ranges::upper_bound(retries_, rank(*turn.ask_), {},
                                           [](const Turn* one) { return rank(*one->ask_); });
  retries_.insert(at, &turn);
}

// Whether there is anybody that it waits for: who waits in vain is in nobody's way.
bool Dispatcher::goes_ahead(const Turn& turn) const {
  const std::uint32_t config = turn.ask_->continues;
  return config == 0 || replicas_.is_ready_to_continue(config, turn.excluded_);
}

// Those that run on where they are need a place before a newcomer does, but do not queue.
void Dispatcher::count_ahead(Turn& turn, bool ahead) {
  if (std::exchange(turn.ahead_, ahead) == ahead) return;
  const std::uint32_t waiting = turn.ask_->runs_on ? 0 : 1;
  ahead_.waiting += ahead ? waiting : 0 - waiting;
  ahead_.of[static_cast<std::size_t>(turn.ask_->priority)] += ahead ? waiting : 0 - waiting;
  ahead_.work += ahead ? turn.work : 0 - turn.work;
}

void Dispatcher::hand_out_again(Wakers& wakers) {
  // The last that found no room, where others like it find none either: there may be many.
  std::pair<std::uint32_t, bool> full{0, false};
  std::erase_if(retries_, [&](Turn* turn) {
    const std::pair like{turn->ask_->continues, turn->ask_->runs_on};
    const bool continues = like.first != 0;
    if (!has_room_for_waiting() || (continues && like == full)) return false;
    Place place = reserve_for(*turn, turn->excluded_);
    if (!place) {
      if (continues && !replicas_.has_room_to_continue(like.first, like.second)) full = like;
      return false;
    }
    count_ahead(*turn, false);
    charge(place, *turn->ask_);
    give(*turn, std::move(place), wakers);
    return true;
  });
}

// How long those wait that go on with an answer depends on whether there is anybody to wait for.
void Dispatcher::tell_of_equals(Wakers& wakers) {
  const std::uint64_t changes = replicas_.equals_changes();
  if (std::exchange(equals_changes_, changes) == changes) return;
  for (Turn* turn : retries_) {
    if (turn->ask_->continues == 0) continue;
    count_ahead(*turn, goes_ahead(*turn));
    wakers.push_back(turn->waker_);
  }
}

}  // namespace penstock::dispatch
