#include "control_plane/suspect_codec.h"

#include <algorithm>

namespace penstock::control_plane {
namespace {

penstock::v1::EngineEnd to_wire(admission::EngineEnd end) {
  switch (end) {
    case admission::EngineEnd::kCrashed:
      return penstock::v1::ENGINE_END_CRASHED;
    case admission::EngineEnd::kKilled:
      return penstock::v1::ENGINE_END_KILLED;
    case admission::EngineEnd::kHung:
      return penstock::v1::ENGINE_END_HUNG;
    case admission::EngineEnd::kLost:
      break;
  }
  return penstock::v1::ENGINE_END_LOST;
}

admission::EngineEnd from_wire(penstock::v1::EngineEnd end) {
  switch (end) {
    case penstock::v1::ENGINE_END_KILLED:
      return admission::EngineEnd::kKilled;
    case penstock::v1::ENGINE_END_HUNG:
      return admission::EngineEnd::kHung;
    case penstock::v1::ENGINE_END_LOST:
      return admission::EngineEnd::kLost;
    default:
      return admission::EngineEnd::kCrashed;
  }
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
