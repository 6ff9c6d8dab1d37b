#include "routing/ejection.h"

#include <algorithm>

namespace penstock::routing {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirst{1'000};
constexpr milliseconds kLongest{30'000};
constexpr std::uint32_t kForgiven = 2;  // bad answers in a row

}  // namespace

milliseconds doubt_after(std::uint32_t failures, Blame blame) {
  const std::uint32_t forgiven = blame == Blame::kAnswer ? kForgiven : 0;
  if (failures <= forgiven) return milliseconds(0);
  const std::uint32_t doublings = std::min(failures - forgiven - 1, 10U);
  return std::min(kFirst * (1U << doublings), kLongest);
}

}  // namespace penstock::routing
