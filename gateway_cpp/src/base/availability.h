// Whether a deployment can answer, as the head tells it.
#pragma once

#include <cstdint>

namespace penstock::base {

enum class Availability : std::uint8_t {
  kUnknown,       // an older head: look at its replicas
  kServing,       // at least one replica is ready
  kLoading,       // none is ready, some are on their way
  kScaledToZero,  // nobody wants replicas of it
  kFailed,        // an operator has to act, or all ended time and again and are tried once more
};

}  // namespace penstock::base
