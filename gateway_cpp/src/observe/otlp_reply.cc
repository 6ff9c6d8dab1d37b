#include "observe/otlp_reply.h"

#include <algorithm>

#include "penstock/v1/otlp.pb.h"

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestWait{30'000};

}  // namespace

PostVerdict verdict_of(const PostAnswer& answer) {
  switch (answer.status) {
    case 0:
    case 429:
    case 502:
    case 503:
    case 504:
      return PostVerdict::kAgain;
    default:
      return answer.status / 100 == 2 ? PostVerdict::kTaken : PostVerdict::kRefused;
  }
}

std::uint64_t rejected_spans(const PostAnswer& answer) {
  otlp::ExportTraceServiceResponse told;
  if (!told.ParseFromString(answer.body)) return 0;
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(told.partial_success().rejected_spans(), 0));
}

milliseconds wait_after(unsigned tries, const PostAnswer& answer, WaitRule rule) {
  if (answer.retry_after.count() > 0) return std::min(answer.retry_after, kLongestWait);
  constexpr unsigned kMostDoublings = 5;
  const milliseconds wait =
      std::min(rule.first * (1U << std::min(tries - 1, kMostDoublings)), kLongestWait);
  return wait * (800 + rule.random % 401) / 1000;
}

}  // namespace penstock::observe
