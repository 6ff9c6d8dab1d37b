// What the metrics page tells of shadows, canaries and router programs, which are not counted by
// deployment.
#pragma once

#include <vector>

#include "base/exposition.h"
#include "base/gateway_facts.h"

namespace penstock::base {

void add_shadows(Exposition& page, const std::vector<ShadowFacts>& shadows);
void add_canaries(Exposition& page, const std::vector<CanaryFacts>& canaries);
void add_programs(Exposition& page, const std::vector<ProgramFacts>& programs);
void add_explain(Exposition& page, const ExplainFacts& explain);

}  // namespace penstock::base
