#include "http/usage_body.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json_text.h"

namespace penstock::http {
namespace {

using admission::RateWindow;
using admission::UsageCounts;

std::string seconds(base::WallTime time) {
  const auto since = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  return std::to_string(since.count());
}

// To the billionth, without the zeros at its end.
std::string dollars(std::uint64_t nanousd) {
  constexpr std::uint64_t kNano = 1'000'000'000;
  constexpr std::size_t kDigits = 9;
  const std::string rest = std::to_string(nanousd % kNano);
  std::string out =
      std::to_string(nanousd / kNano) + "." + std::string(kDigits - rest.size(), '0') + rest;
  out.erase(std::max(out.find_last_not_of('0') + 1, out.find('.') + 2));
  return out;
}

std::string used(const UsageCounts& counts) {
  return R"({"num_model_requests":)" + std::to_string(counts.requests) +
         R"(,"num_limited_requests":)" + std::to_string(counts.rejected) + R"(,"input_tokens":)" +
         std::to_string(counts.prompt_tokens) + R"(,"input_cached_tokens":)" +
         std::to_string(counts.cached_tokens) + R"(,"output_tokens":)" +
         std::to_string(counts.completion_tokens) + R"(,"cost_usd":)" +
         dollars(counts.cost_nanousd) + "}";
}

// Somebody's name and what they have had.
std::string part(std::string_view id, const UsageCounts& counts) {
  return R"({"id":)" + (id.empty() ? std::string("null") : base::json_string(id)) + R"(,"usage":)" +
         used(counts);
}

std::string window(const std::optional<RateWindow>& rate) {
  if (!rate) return "null";
  return R"({"limit":)" + std::to_string(rate->limit) + R"(,"remaining":)" +
         std::to_string(rate->remaining) + "}";
}

std::string of_day(std::uint64_t limit, std::uint64_t taken) {
  if (limit == 0) return "null";
  return R"({"limit":)" + std::to_string(limit) + R"(,"remaining":)" +
         std::to_string(limit - std::min(taken, limit)) + "}";
}

}  // namespace

std::string usage_body(const admission::Caller& caller, const admission::DayStanding& day,
                       const admission::RateState& rates) {
  const bool told = day.as_of != base::WallTime{};
  std::string body = R"({"object":"usage","as_of":)" + (told ? seconds(day.as_of) : "null");
  body += R"(,"start_time":)" + seconds(day.ends_at - std::chrono::days(1));
  body += R"(,"end_time":)" + seconds(day.ends_at);
  body += R"(,"key":)" + part(caller.key_id, day.key) + "}";
  body += R"(,"tenant":)" + part(caller.tenant->id, day.tenant);
  body += R"(,"limits":{"requests_per_minute":)" + window(rates.requests);
  body += R"(,"tokens_per_minute":)" + window(rates.tokens);
  body += R"(,"max_streams":)" + window(rates.streams);
  body += R"(,"tokens_per_day":)" +
          of_day(caller.tenant->limits.per_day.tokens, day.tenant_taken.tokens);
  return body + "}}}";
}

}  // namespace penstock::http
