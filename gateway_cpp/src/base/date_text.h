// A moment as people and clients read it.
#pragma once

#include <array>
#include <ctime>
#include <string>

#include "base/clock.h"

namespace penstock::base {

// "2026-01-31T12:00:00Z". Takes a lock of the C library: not for what happens with each request.
inline std::string date_text(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace penstock::base
