#include "gateways.h"

#include <algorithm>

namespace penstock::replica {

std::shared_ptr<Gateway> Gateways::enter(const std::string& id, Time now) {
  forget(now);
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& known) {
    return !id.empty() && known->id == id;
  });
  if (found != known_.end()) return *found;
  auto made = std::make_shared<Gateway>();
  made->id = id;
  known_.push_back(made);
  return made;
}

void Gateways::began(Gateway* gateway) {
  if (gateway == nullptr) return;
  ++gateway->calls;
  gateway->had_calls = true;
}

void Gateways::ended(Gateway* gateway, Time now) {
  if (gateway == nullptr) return;
  --gateway->calls;
  gateway->last = now;
}

uint32_t Gateways::count(const Gateway* self, Time now) {
  forget(now);
  const auto counts = [&](const auto& known) { return known.get() == self || busy(*known, now); };
  return static_cast<uint32_t>(std::count_if(known_.begin(), known_.end(), counts));
}

bool Gateways::busy(const Gateway& gateway, Time now) {
  return gateway.calls > 0 || (gateway.had_calls && now - gateway.last < kRemembered);
}

// Those whose sessions are gone, with their calls.
void Gateways::forget(Time now) {
  std::erase_if(known_,
                [&](const auto& known) { return known.use_count() == 1 && !busy(*known, now); });
}

}  // namespace penstock::replica
