// Service level objectives: what a deployment's requests are to be, and how many were not. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/request_end.h"

namespace penstock::base {

enum class Objective : std::uint8_t { kTtft, kTotal, kErrors };
inline constexpr std::size_t kObjectives = 3;
std::string_view name(Objective objective);  // as reports have it: "ttft_p50"

// As the deployment's operator said it.
struct Slo {
  std::chrono::milliseconds ttft{0};   // to the first token of a stream; 0: any time
  std::chrono::milliseconds total{0};  // of a whole answer; 0: any time
  bool errors = false;                 // whether any are too many
  bool operator==(const Slo&) const = default;
};

enum class Verdict : std::uint8_t { kNotJudged, kGood, kBad };

// What each objective says of a request. A client that left says nothing of a deployment, unless it
// had waited for longer than it should have to.
std::array<Verdict, kObjectives> judged(const Slo& slo, const RequestEnd& end);

}  // namespace penstock::base
