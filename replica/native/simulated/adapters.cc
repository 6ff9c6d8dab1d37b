#include "simulated/adapters.h"

#include <algorithm>
#include <utility>

namespace penstock::replica::simulated {
namespace {

bool waits_for_room(const Adapters::Parked& parked) {
  return parked.call->request.adapter_wait_ms() > 0;
}

}  // namespace

void Adapters::add(const AdapterId& id, Time now) {
  held_.try_emplace(id.name, Held{.digest = id.digest, .used = now});
}

bool Adapters::remove(const std::string& name) {
  const auto found = held_.find(name);
  if (found == held_.end()) return true;
  if (found->second.calls > 0) return false;
  held_.erase(found);
  return true;
}

const std::string* Adapters::digest_of(const std::string& name) const {
  const auto found = held_.find(name);
  return found == held_.end() ? nullptr : &found->second.digest;
}

void Adapters::close(const std::string& name) {
  const auto found = held_.find(name);
  if (found != held_.end()) found->second.closed = true;
}

void Adapters::reopen(const std::string& name) {
  const auto found = held_.find(name);
  if (found != held_.end()) found->second.closed = false;
}

bool Adapters::enter(const AdapterId& id, Time now) {
  const auto found = held_.find(id.name);
  if (found == held_.end() || found->second.digest != id.digest) return false;
  if (found->second.closed) return false;
  ++found->second.calls;
  found->second.used = now;
  return true;
}

bool Adapters::leave(const std::string& name, Time now) {
  Held& held = held_.at(name);
  held.used = now;
  if (--held.calls > 0 || !awaited_.contains(name)) return false;
  awaited_.clear();
  return true;
}

std::vector<AdapterUse> Adapters::uses(Time now) const {
  std::vector<AdapterUse> uses;
  uses.reserve(held_.size());
  for (const auto& [name, held] : held_) uses.push_back({name, held.calls, now - held.used});
  return uses;
}

bool Adapters::tell_when_idle(std::set<std::string> names) {
  awaited_ = std::move(names);
  const bool idle = std::any_of(awaited_.begin(), awaited_.end(), [this](const std::string& name) {
    const auto found = held_.find(name);
    return found == held_.end() || found->second.calls == 0;
  });
  if (idle) awaited_.clear();
  return idle;
}

bool Adapters::park(const AdapterId& id, Parked parked) {
  auto& waiting = parked_[id];
  const bool is_asked_for = std::any_of(waiting.begin(), waiting.end(), [](const auto& other) {
    return waits_for_room(other.second);
  });
  // Whether there is room now is another question each time.
  const bool is_to_be_asked_for = !waits_for_room(parked) || !is_asked_for;
  const uint64_t key = parked.call->key;
  waiting.emplace(key, std::move(parked));
  return is_to_be_asked_for;
}

bool Adapters::unpark(const CallPtr& call) {
  const auto found = parked_.find({call->request.adapter(), call->request.adapter_digest()});
  if (found == parked_.end() || found->second.erase(call->key) == 0) return false;
  if (found->second.empty()) parked_.erase(found);
  return true;
}

std::vector<Adapters::Parked> Adapters::take_parked(const AdapterId& id, bool all) {
  std::vector<Parked> taken;
  const auto found = parked_.find(id);
  if (found == parked_.end()) return taken;
  auto& waiting = found->second;
  for (auto each = waiting.begin(); each != waiting.end();) {
    if (all || !waits_for_room(each->second)) {
      taken.push_back(std::move(each->second));
      each = waiting.erase(each);
    } else {
      ++each;
    }
  }
  if (waiting.empty()) parked_.erase(found);
  return taken;
}

}  // namespace penstock::replica::simulated
