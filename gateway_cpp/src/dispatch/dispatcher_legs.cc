// What a router program is told of engines, and the places of what it has them do.
#include <algorithm>
#include <utility>

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

void LegPlace::release() {
  if (const auto dispatcher = std::exchange(dispatcher_, nullptr)) dispatcher->release(*this);
  replica_.reset();
}

std::vector<Engine> Dispatcher::engines_like(const routing::Replica& one) const {
  std::vector<Engine> engines;
  const std::lock_guard lock(mutex_);
  for (const auto& replica : replicas_.replicas()) {
    const auto& standing = replica->standing();
    const bool is_alike = replica->route().template_digest == one.route().template_digest;
    if (!is_alike || !standing.sound) continue;
    const routing::LoadReport& load = replica->reported();
    engines.push_back({.replica = replica,
                       .role = replica->route().role,
                       .moves_kv = replica->route().microserving,
                       .running = load.running,
                       .waiting = load.waiting,
                       .waiting_tokens = load.waiting_tokens,
                       .kv_usage = load.kv_usage,
                       .places_left = replica->places_left(),
                       .generating = replica->generating()});
  }
  std::ranges::sort(engines, {}, [](const Engine& engine) -> const std::string& {
    return engine.replica->id().value;
  });
  return engines;
}

bool Dispatcher::is_sound(const routing::Replica& replica) const {
  const std::lock_guard lock(mutex_);
  return replica.standing().sound;
}

bool Dispatcher::move(Place& place, const routing::ReplicaId& to, routing::Pick* pick) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    auto there = reserve_at(to, routing::ReplicaSet::What::kAnswer, wakers);
    if (!there) return false;
    const auto before = std::exchange(place.replica_, std::move(there));
    place.config_ = place.replica_->config();
    if (pick != nullptr) tell_move(*place.replica_, *pick);
    replicas_.release(*before, clock_.steady_now());
    const auto others = hand_out();
    wakers.insert(wakers.end(), others.begin(), others.end());
  }
  for (const auto& waker : wakers) waker->wake();
  return true;
}

// The load is told as it was before the call.
void Dispatcher::tell_move(const routing::Replica& to, routing::Pick& pick) const {
  pick.begin(routing::kByProgram);
  pick.add(to.id().value, to.standing().load - 1, routing::Verdict::kTaken);
  pick.more = static_cast<std::uint32_t>(replicas_.replicas().size() - 1);
}

LegPlace Dispatcher::place_leg(const routing::ReplicaId& at) {
  LegPlace place;
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    place.replica_ = reserve_at(at, routing::ReplicaSet::What::kLeg, wakers);
    if (place) place.dispatcher_ = shared_from_this();
  }
  for (const auto& waker : wakers) waker->wake();
  return place;
}

// Shadows that are there give way.
std::shared_ptr<routing::Replica> Dispatcher::reserve_at(const routing::ReplicaId& id,
                                                         routing::ReplicaSet::What what,
                                                         Wakers& wakers) {
  for (;;) {
    auto there = replicas_.reserve_at(id, what, clock_.steady_now());
    const auto shadow = std::ranges::find_if(
        shadows_, [&id](const ShadowPlace* place) { return place->replica()->id() == id; });
    if (there || shadow == shadows_.end()) return there;
    give_up(**shadow, wakers);
  }
}

void Dispatcher::release(LegPlace& place) {
  Wakers wakers;
  {
    const std::lock_guard lock(mutex_);
    replicas_.release_leg(*place.replica_, clock_.steady_now());
    wakers = hand_out();
  }
  for (const auto& waker : wakers) waker->wake();
}

}  // namespace penstock::dispatch
