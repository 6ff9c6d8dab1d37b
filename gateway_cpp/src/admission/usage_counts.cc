#include "admission/usage_counts.h"

namespace penstock::admission {

UsageCounts& UsageCounts::operator+=(const UsageCounts& more) {
  requests += more.requests;
  rejected += more.rejected;
  prompt_tokens += more.prompt_tokens;
  completion_tokens += more.completion_tokens;
  cached_tokens += more.cached_tokens;
  cost_nanousd += more.cost_nanousd;
  return *this;
}

UsageCounts& UsageCounts::operator-=(const UsageCounts& less) {
  requests -= less.requests;
  rejected -= less.rejected;
  prompt_tokens -= less.prompt_tokens;
  completion_tokens -= less.completion_tokens;
  cached_tokens -= less.cached_tokens;
  cost_nanousd -= less.cost_nanousd;
  return *this;
}

}  // namespace penstock::admission
