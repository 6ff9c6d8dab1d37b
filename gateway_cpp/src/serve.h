// Serves until a signal says to stop.
#pragma once

#include <string>

#include "base/config.h"

namespace penstock {

constexpr int kCutShort = 1;  // requests were running at the drain's deadline, or at SIGQUIT
constexpr int kBadFlags = 2;
constexpr int kPortTaken = 3;

// How the process is to end.
struct Ended {
  int exit_code = 0;
  std::string error;  // empty: it did start
};

// Listens, serves, and drains when a signal says so.
Ended serve(const base::GatewayConfig& config);

}  // namespace penstock
