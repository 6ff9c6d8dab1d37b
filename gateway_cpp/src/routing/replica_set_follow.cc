// ReplicaSet::follow: which replicas are in the set, and under which limits and policy.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "routing/replica_set.h"

namespace penstock::routing {

void ReplicaSet::follow(const DeploymentRoute& route, std::span<const ReplicaRoute> replicas,
                        base::SteadyTime now) {
  wake(now);
  limits_ = route.limits;
  revisions_.follow(route);
  const bool fewer = drop_unlisted(replicas, now);
  const bool more = take_up(replicas);
  const bool other_policy = route.selection_policy != policy_name_;
  if (other_policy) {
    policy_name_ = route.selection_policy;
    policy_ = make_policy(policy_name_);
    for (const auto& member : members_) member->note = {};
  }
  if (fewer || more || other_policy) policy_->follow(members_);
  for (const auto& member : members_) {
    revisions_.listed(*member);
    touch(*member, now);
    if (other_policy) policy_->update(*member);
  }
  std::erase_if(departed_, [](const auto& entry) { return entry.second.expired(); });
  followed_ = true;
  next_leaving_ = {};
}

void ReplicaSet::look_for_leaving(base::WallTime now) {
  if (now < next_leaving_) return;
  next_leaving_ = base::WallTime::max();
  for (const auto& member : members_) {
    const base::WallTime at = member->route_.hand_over_at;
    member->leaves_ = at != base::WallTime{} && at <= now;
    if (at > now) next_leaving_ = std::min(next_leaving_, at);
    say(*member);
  }
}

void ReplicaSet::say(Replica& replica) {
  Word word = replica.leaves_ ? Word::kHandOver : Word::kNone;
  if (replica.suspected_ || replica.silent_) word = Word::kStuck;
  if (replica.word_.exchange(word, std::memory_order_relaxed) == word) return;
  words_.fetch_add(1, std::memory_order_release);
}

bool ReplicaSet::drop_unlisted(std::span<const ReplicaRoute> replicas, base::SteadyTime now) {
  // One that was woken meanwhile is another one: what is believed of its prefixes holds no longer.
  std::set<std::tuple<std::string_view, std::string_view, std::uint32_t>> listed;
  for (const ReplicaRoute& route : replicas) {
    listed.emplace(route.id.value, route.address, route.wakes);
  }
  std::vector<std::shared_ptr<Replica>> gone;
  std::ranges::copy_if(members_, std::back_inserter(gone), [&listed](const auto& member) {
    return !listed.contains({member->id().value, member->address(), member->route().wakes});
  });
  for (const auto& replica : gone) remove(*replica, now);
  return !gone.empty();
}

// True: the policy has to look at them anew.
bool ReplicaSet::take_up(std::span<const ReplicaRoute> replicas) {
  bool more = false;
  for (const ReplicaRoute& route : replicas) {
    auto known = by_id_.find(route.id.value);
    const bool is_new = known == by_id_.end();
    if (is_new) known = add(route);
    Replica& replica = *known->second;
    if (replica.address() != route.address) continue;  // an id that is named twice: the first holds
    if (is_new || replica.route_ != route) {
      replica.route_ = route;
      replica.own_token_.store(route.own_token, std::memory_order_relaxed);
      replica.nearness_ = nearness(route);
      const bool in_zone = !place_.zone.empty() && route.zone == place_.zone;
      more = std::exchange(replica.in_zone_, in_zone) != in_zone || more;
      learn(replica);
      follow_revision(replica);
    }
    more = more || is_new;
  }
  return more;
}

void ReplicaSet::follow_revision(Replica& replica) {
  const std::uint32_t revision = revisions_.number_of(replica.route_.template_digest);
  if (replica.revision_ != 0) revisions_.note(replica.revision_, replica.standing_, {});
  replica.revision_ = revision;
  revisions_.note(revision, {}, replica.standing_);
}

ReplicaSet::ById::iterator ReplicaSet::add(const ReplicaRoute& route) {
  auto replica = departed_[{route.id.value, route.address}].lock();
  if (!replica || replica->route().wakes != route.wakes) {
    replica = std::make_shared<Replica>(route, ++serials_);
  }
  replica->note = {};
  replica->listed_ = true;
  replica->member_at_ = members_.size();
  members_.push_back(replica);
  return by_id_.emplace(route.id.value, replica.get()).first;
}

void ReplicaSet::remove(Replica& replica, base::SteadyTime now) {
  const std::shared_ptr<Replica> kept = members_[replica.member_at_];
  departed_[{replica.id().value, replica.address()}] = kept;
  preferences_.forget(replica);
  replica.listed_ = false;
  settle(replica, now);
  members_[replica.member_at_] = members_.back();
  members_[replica.member_at_]->member_at_ = replica.member_at_;
  members_.pop_back();
  by_id_.erase(replica.id().value);
}

void ReplicaSet::learn(Replica& replica) {
  if (replica.has_reported_) {
    const LoadReport& load = replica.reported_;
    preferences_.learn(replica, load.adapters, load.adapter_slots);
  } else {
    // There is room for one more until it says otherwise.
    const auto& adapters = replica.route_.adapters;
    preferences_.learn(replica, adapters, static_cast<std::uint32_t>(adapters.size() + 1));
  }
}

Nearness ReplicaSet::nearness(const ReplicaRoute& route) const {
  if (!place_.node.empty() && route.node == place_.node) return Nearness::kSameNode;
  if (!place_.zone.empty() && route.zone == place_.zone) return Nearness::kSameZone;
  return Nearness::kElsewhere;
}

}  // namespace penstock::routing
