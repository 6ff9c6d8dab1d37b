#include "control_plane/suspect_codec.h"

#include <algorithm>

namespace penstock::control_plane {
namespace {

// On the wire they stand in the same order, one later.
penstock::v1::EngineEnd to_wire(admission::EngineEnd end) {
  return static_cast<penstock::v1::EngineEnd>(static_cast<int>(end) + 1);
}
static_assert(static_cast<int>(admission::EngineEnd::kCrashed) + 1 ==
              penstock::v1::ENGINE_END_CRASHED);
static_assert(static_cast<int>(admission::EngineEnd::kLost) + 1 == penstock::v1::ENGINE_END_LOST);

// What is not known, or not said, is a crash.
admission::EngineEnd from_wire(penstock::v1::EngineEnd end) {
  const bool is_known = end > 0 && end <= penstock::v1::ENGINE_END_LOST;
  return is_known ? static_cast<admission::EngineEnd>(end - 1) : admission::EngineEnd::kCrashed;
}

}  // namespace

std::vector<admission::Suspect> suspects_of(const penstock::v1::RouteSnapshot& snapshot) {
  std::vector<admission::Suspect> suspects;
  for (const auto& wire : snapshot.suspects()) {
    admission::Suspect suspect;
    if (wire.fingerprint().size() != suspect.fingerprint.bytes.size()) continue;
    std::copy(wire.fingerprint().begin(), wire.fingerprint().end(),
              suspect.fingerprint.bytes.begin());
    suspect.deployment = wire.deployment();
    suspect.deployment_uid = wire.deployment_uid();
    suspect.path = wire.path();
    suspect.until = base::from_unix_ms(wire.until_ms());
    suspect.answered = base::from_unix_ms(wire.answered_ms());
    for (const auto& death : wire.deaths()) {
      suspect.deaths.push_back({death.replica_id(), base::from_unix_ms(death.at_ms()),
                                death.gateway_id(), from_wire(death.end()), death.shared()});
    }
    suspects.push_back(std::move(suspect));
  }
  return suspects;
}

void add_suspects(const std::vector<admission::Suspect>& suspects,
                  penstock::v1::GatewayReport& report) {
  for (const admission::Suspect& suspect : suspects) {
    penstock::v1::Suspect& wire = *report.add_suspects();
    wire.set_fingerprint(suspect.fingerprint.view().data(), suspect.fingerprint.view().size());
    wire.set_deployment(suspect.deployment);
    wire.set_deployment_uid(suspect.deployment_uid);
    wire.set_path(suspect.path);
    wire.set_until_ms(base::unix_ms(suspect.until));
    wire.set_answered_ms(base::unix_ms(suspect.answered));
    for (const admission::EngineDeath& death : suspect.deaths) {
      penstock::v1::EngineDeath& out = *wire.add_deaths();
      out.set_replica_id(death.replica_id);
      out.set_at_ms(base::unix_ms(death.at));
      out.set_gateway_id(death.gateway_id);
      out.set_end(to_wire(death.end));
      out.set_shared(death.shared);
    }
  }
}

}  // namespace penstock::control_plane
