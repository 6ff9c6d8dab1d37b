#include "admission/wait_slack.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace penstock::admission {
namespace {

constexpr float kMost = 1.5F;

}  // namespace

void WaitSlack::learn(std::chrono::milliseconds estimated, std::chrono::milliseconds real) {
  ratios_[next_] = static_cast<float>(real.count()) / static_cast<float>(estimated.count());
  next_ = (next_ + 1) % kWaits;
  std::array<float, 2> largest{};
  std::partial_sort_copy(ratios_.begin(), ratios_.end(), largest.begin(), largest.end(),
                         std::greater<>());
  slack_ = std::clamp(largest[1], 1.0F, kMost);
}

std::chrono::milliseconds WaitSlack::within(std::chrono::milliseconds estimated) const {
  return std::chrono::milliseconds(
      std::llround(static_cast<double>(estimated.count()) * static_cast<double>(slack_)));
}

}  // namespace penstock::admission
