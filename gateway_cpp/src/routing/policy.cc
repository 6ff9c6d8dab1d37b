#include "routing/policy.h"

#include "routing/least_loaded_policy.h"
#include "routing/power_of_two_policy.h"
#include "routing/prefix_aware_policy.h"
#include "routing/round_robin_policy.h"
#include "routing/session_policy.h"

namespace penstock::routing {

std::unique_ptr<Policy> make_policy(std::string_view name) {
  if (name == "round_robin") return std::make_unique<RoundRobinPolicy>();
  if (name == "least_loaded") return std::make_unique<LeastLoadedPolicy>();
  if (name == "prefix_aware") return std::make_unique<PrefixAwarePolicy>();
  if (name == "session") return std::make_unique<SessionPolicy>();
  return std::make_unique<PowerOfTwoPolicy>();
}

}  // namespace penstock::routing
