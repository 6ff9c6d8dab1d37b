// What requests cost, added up. A value.
#pragma once

#include <cstdint>

namespace penstock::admission {

struct UsageCounts {
  std::uint64_t requests = 0;  // that went to a replica
  std::uint64_t rejected = 0;  // by a limit of the tenant
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of the prompt tokens
  std::uint64_t cost_nanousd = 0;   // billionths of a US dollar, as replicas report them
  bool operator==(const UsageCounts&) const = default;
  UsageCounts& operator+=(const UsageCounts& more);
  UsageCounts& operator-=(const UsageCounts& less);  // what was added before

  // What a limit counts.
  std::uint64_t tokens() const { return prompt_tokens + completion_tokens; }
};

}  // namespace penstock::admission
