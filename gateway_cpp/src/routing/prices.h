// What tokens of a deployment cost. A value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace penstock::routing {

// US dollars for a million tokens.
struct Prices {
  double input = 0;
  double output = 0;
  double cached = 0;  // of the prompt
  bool operator==(const Prices&) const = default;

  // Billionths of a US dollar. `cached`: of the prompt's tokens.
  std::uint64_t nanousd(std::uint64_t prompt, std::uint64_t cached_tokens,
                        std::uint64_t completion) const {
    constexpr double kNanoOfAMillionth = 1e9 / 1e6;
    constexpr double kMost = 9e15;  // what JSON carries exactly
    const auto of_cache = std::min(cached_tokens, prompt);
    const double usd = static_cast<double>(prompt - of_cache) * input +
                       static_cast<double>(of_cache) * cached +
                       static_cast<double>(completion) * output;
    return static_cast<std::uint64_t>(
        std::llround(std::clamp(usd * kNanoOfAMillionth, 0.0, kMost)));
  }
};

}  // namespace penstock::routing
