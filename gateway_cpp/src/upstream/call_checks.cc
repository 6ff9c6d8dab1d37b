#include "upstream/call_checks.h"

#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "base/utf8_text.h"

namespace penstock::upstream {

namespace {

constexpr size_t kLongestContentType = 256;
constexpr size_t kLongestName = 4096;  // of a model: it may be a path
constexpr size_t kMostChoices = 65'536;
constexpr uint64_t kMostCostNanousd = 1'000'000'000'000'000;  // a million dollars
constexpr uint64_t kMostTimeUs = 7ULL * 24 * 3600 * 1'000'000;
constexpr size_t kLongestWord = 256;
constexpr size_t kLongestMessage = 16UL * 1024;

// Those that have a body, and no rules of their own about it. 0: the replica leaves it to us.
bool is_answer(uint32_t status) {
  constexpr uint32_t kNoContent = 204;
  constexpr uint32_t kResetContent = 205;
  constexpr uint32_t kPartialContent = 206;
  return status == 0 || (status >= 200 && status < 300 && status != kNoContent &&
                         status != kResetContent && status != kPartialContent);
}

bool is_plausible(const Usage& usage) { return bounded(usage) == usage; }

// Text of foreign making is UTF-8, which a cut must leave it.
void cut(std::string& text, size_t most) { text.resize(base::cut_text(text, most).size()); }

}  // namespace

std::string fault_of(const Head& head) {
  if (!is_answer(head.status)) {
    return "its status is " + std::to_string(head.status) + ", and no answer with a body has that";
  }
  if (head.content_type.size() > kLongestContentType ||
      !base::is_printable_ascii(head.content_type)) {
    return "its content type is none";
  }
  if (std::max(head.model.size(), head.model_version.size()) > kLongestName) {
    return "the name of its model is longer than " + std::to_string(kLongestName) + " bytes";
  }
  for (const uint32_t count : {head.prompt_tokens, head.cached_tokens, head.trimmed_tokens,
                               head.trimmed_messages, head.kv_moved_tokens}) {
    if (count > kMostTokens) return "it counts " + std::to_string(count) + " tokens";
  }
  return {};
}

std::string fault_of(const Finished& outcome) {
  if (outcome.usage && !is_plausible(*outcome.usage)) return "nothing costs what it says to cost";
  if (std::max({outcome.queue_us, outcome.prefill_us, outcome.decode_us}) > kMostTimeUs) {
    return "it says to have taken more than a week";
  }
  if (outcome.finish_reasons.size() > kMostChoices) {
    return "it has " + std::to_string(outcome.finish_reasons.size()) + " choices";
  }
  return outcome.adapter.size() > kLongestName
             ? "the name of its adapter is longer than " + std::to_string(kLongestName) + " bytes"
             : std::string();
}

Usage bounded(Usage usage) {
  return {.prompt_tokens = std::min(usage.prompt_tokens, kMostTokens),
          .completion_tokens = std::min(usage.completion_tokens, kMostTokens),
          .cached_tokens = std::min(usage.cached_tokens, kMostTokens),
          .cost_nanousd = std::min(usage.cost_nanousd, kMostCostNanousd)};
}

void bound(v1::ErrorDetail& error) {
  cut(*error.mutable_type(), kLongestWord);
  cut(*error.mutable_code(), kLongestWord);
  cut(*error.mutable_param(), kLongestName);
  cut(*error.mutable_message(), kLongestMessage);
}

}  // namespace penstock::upstream
