// Places that nobody needs, and how they are given up.
#include <algorithm>
#include <utility>

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

void ShadowPlace::release() {
  if (const auto dispatcher = std::exchange(dispatcher_, nullptr)) dispatcher->release(*this);
  replica_.reset();
}

// Where several gateways share a replica one place is left: the others' requests cannot ask for it.
bool Dispatcher::place_shadow(ShadowPlace& place, const PlaceRequest& ask,
                              std::span<const routing::ReplicaId> excluded,
                              std::shared_ptr<Waker> waker) {
  const std::lock_guard lock(mutex_);
  if (!queue_.empty() || ahead_.work > 0 || !has_room_for_waiting()) return false;
  const auto now = clock_.steady_now();
  auto replica = replicas_.reserve({.adapter = ask.adapter, .excluded = excluded}, now);
  if (!replica) return false;
  if (replica->reported().gateways > 1 && is_needed(*replica)) {
    replicas_.release(*replica, now);
    return false;
  }
  place.replica_ = std::move(replica);
  place.waker_ = std::move(waker);
  place.given_up_.store(false, std::memory_order_relaxed);
  place.dispatcher_ = shared_from_this();
  shadows_.push_back(&place);
  return true;
}

// All of its places are taken, or its memory is.
bool Dispatcher::is_needed(const routing::Replica& replica) {
  const std::uint32_t calls = replica.in_flight() + replica.reported().calls_elsewhere;
  return replica.standing().pressured || (replica.limit() > 0 && calls >= replica.limit());
}

void Dispatcher::give_up(ShadowPlace& place, Wakers& wakers) {
  std::erase(shadows_, &place);
  replicas_.release(*place.replica_, clock_.steady_now());
  wakers.push_back(std::move(place.waker_));
  place.given_up_.store(true, std::memory_order_release);
}

// For a request that would have to wait: those that began last have done the least.
void Dispatcher::make_room(Wakers& wakers) {
  while (!shadows_.empty() && replicas_.counts().with_room == 0) give_up(*shadows_.back(), wakers);
}

// The same for one that may not go everywhere.
Place Dispatcher::reserve_before_shadows(const PlaceRequest& ask,
                                         std::span<const routing::ReplicaId> excluded, bool patient,
                                         Wakers& wakers) {
  Place place = reserve(ask, excluded, patient);
  const bool helps = ask.continues == 0 || replicas_.is_ready_to_continue(ask.continues, excluded);
  while (!place && helps && !shadows_.empty()) {
    give_up(*shadows_.back(), wakers);
    place = reserve(ask, excluded, patient);
  }
  return place;
}

// The replica is full by its own word: other gateways' requests may wait for it, or its memory is
// needed for those that it has.
void Dispatcher::leave_to_others(const routing::Replica& replica, Wakers& wakers) {
  const bool others = replica.reported().calls_elsewhere > 0 || replica.standing().pressured;
  if (!others || !is_needed(replica)) return;
  for (ShadowPlace* place : std::vector<ShadowPlace*>(shadows_)) {
    if (place->replica_.get() == &replica) give_up(*place, wakers);
  }
}

void Dispatcher::release(ShadowPlace& place) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    if (std::erase(shadows_, &place) == 0) return;  // it was given up
    replicas_.release(*place.replica_, clock_.steady_now());
    wakers = hand_out();
  }
  for (const auto& waker : wakers) waker->wake();
}

}  // namespace penstock::dispatch
