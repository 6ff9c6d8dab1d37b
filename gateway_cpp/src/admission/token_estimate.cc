#include "admission/token_estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::admission {
namespace {

constexpr double kKept = 1 - 1.0 / 32;
// Before anything was learnt: English prose in common tokenizers, and answers as chats have them.
constexpr double kTokensAByte = 0.25;
constexpr double kLength = 256;
constexpr double kShare = 0.5;
// The least ratio seen is forgotten by this part of the way to each higher one.
constexpr double kForgotten = 1.0 / 1024;
constexpr double kBelowLeast = 0.75;
constexpr std::uint32_t kEnough = 32;

std::uint32_t rounded(double tokens) {
  constexpr double kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp(std::ceil(tokens), 0.0, kMost));
}

}  // namespace

void TokenEstimator::Mean::add(double value, double of) {
  sum = sum * kKept + value;
  weight = weight * kKept + of;
}

double TokenEstimator::length() const { return length_.value_or(kLength); }
double TokenEstimator::share() const { return share_.value_or(kShare); }

TokenEstimate TokenEstimator::estimate(std::size_t body_bytes,
                                       std::optional<std::uint64_t> max_tokens,
                                       std::uint64_t choices) const {
  TokenEstimate told;
  told.prompt = rounded(static_cast<double>(body_bytes) * tokens_a_byte_.value_or(kTokensAByte));
  told.choices = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(choices, 1, 1U << 16U));
  double each = length();
  if (max_tokens) {
    const auto most = static_cast<double>(*max_tokens);
    const bool share_tells_truer = share_error_.value_or(0) < length_error_.value_or(0);
    each = share_tells_truer ? share() * most : std::min(length(), most);
    told.asked = rounded(most * told.choices);
  }
  told.completion = rounded(each * told.choices);
  return told;
}

std::uint32_t TokenEstimator::least_prompt(std::size_t body_bytes) const {
  if (learnt_ < kEnough) return 0;
  const double tokens = static_cast<double>(body_bytes) * least_a_byte_ * kBelowLeast;
  return static_cast<std::uint32_t>(
      std::min(tokens, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
}

void TokenEstimator::learn(std::size_t body_bytes, std::uint32_t prompt_tokens,
                           std::uint32_t completion_tokens, const TokenEstimate& told) {
  const double each = static_cast<double>(completion_tokens) / told.choices;
  if (told.asked > 0) {
    const double asked = static_cast<double>(told.asked) / told.choices;
    length_error_.add(std::abs(std::min(length(), asked) - each));
    share_error_.add(std::abs(share() * asked - each));
    share_.add(each, asked);
  }
  length_.add(each);
  if (body_bytes == 0 || prompt_tokens == 0) return;
  const auto bytes = static_cast<double>(body_bytes);
  tokens_a_byte_.add(prompt_tokens, bytes);
  const double ratio = prompt_tokens / bytes;
  const bool lower = learnt_ == 0 || ratio < least_a_byte_;
  least_a_byte_ = lower ? ratio : least_a_byte_ + (ratio - least_a_byte_) * kForgotten;
  if (learnt_ < kEnough) ++learnt_;
}

}  // namespace penstock::admission
