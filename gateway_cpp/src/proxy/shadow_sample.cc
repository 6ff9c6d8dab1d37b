#include "proxy/shadow_sample.h"

#include <algorithm>
#include <limits>

namespace penstock::proxy {

uint32_t microseconds_of(std::chrono::nanoseconds time) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  const int64_t count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(count, 0, kMost));
}

void tell(const upstream::Usage& usage, const routing::DeploymentRoute& deployment,
          v1::Usage& told) {
  told.set_prompt_tokens(usage.prompt_tokens);
  told.set_completion_tokens(usage.completion_tokens);
  told.set_cached_tokens(usage.cached_tokens);
  const bool is_reckoned = usage.cost_nanousd != 0 || deployment.managed;
  told.set_cost_nanousd(is_reckoned
                            ? usage.cost_nanousd
                            : deployment.prices.nanousd(usage.prompt_tokens, usage.cached_tokens,
                                                        usage.completion_tokens));
}

}  // namespace penstock::proxy
