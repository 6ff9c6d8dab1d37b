#include "admission/wait_slack.h"

#include <algorithm>
#include <cmath>

namespace penstock::admission {
namespace {

constexpr double kMostSlack = 1.5;

}  // namespace

void WaitSlack::learn(milliseconds estimated, milliseconds real, base::SteadyTime now) {
  const double ratio = static_cast<double>(real.count()) / static_cast<double>(estimated.count());
  waits_[next_] = {now, ratio};
  next_ = (next_ + 1) % kWaits;
}

// By the second largest of them: one alone may be anything.
WaitSlack::milliseconds WaitSlack::within(milliseconds estimated, base::SteadyTime now) const {
  double largest = 1;
  double second = 1;
  for (const Wait& wait : waits_) {
    if (wait.ratio <= second || now - wait.over > kMemory) continue;
    second = std::min(wait.ratio, largest);
    largest = std::max(wait.ratio, largest);
  }
  return milliseconds(
      std::llround(static_cast<double>(estimated.count()) * std::min(second, kMostSlack)));
}

}  // namespace penstock::admission
