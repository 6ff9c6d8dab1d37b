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

std::string used(const UsageCounts& counts) {
  return R"({"num_model_requests":)" + std::to_string(counts.requests) +
         R"(,"num_limited_requests":)" + std::to_string(counts.rejected) + R"(,"input_tokens":)" +
         std::to_string(counts.prompt_tokens) + R"(,"input_cached_tokens":)" +
         std::to_string(counts.cached_tokens) + R"(,"output_tokens":)" +
         std::to_string(counts.completion_tokens) + R"(,"cost_usd":)" +
         admission::usd_text(counts.cost_nanousd) + "}";
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

std::string of_day(std::string_view limit, std::string_view remaining) {
  return R"({"limit":)" + std::string(limit) + R"(,"remaining":)" + std::string(remaining) + "}";
}

// The members that limits of a day are.
std::string day_limits(const admission::DayAmount& limits, const admission::DayAmount& taken) {
  const admission::DayAmount left = limits.less(taken);
  std::string members = R"("tokens_per_day":)";
  members += limits.tokens == 0
                 ? "null"
                 : of_day(std::to_string(limits.tokens), std::to_string(left.tokens));
  members += R"(,"usd_per_day":)";
  members += limits.nanousd == 0
                 ? "null"
                 : of_day(admission::usd_text(limits.nanousd), admission::usd_text(left.nanousd));
  return members;
}

}  // namespace

std::string usage_body(const admission::Caller& caller, const admission::DayStanding& day,
                       const admission::RateState& rates) {
  const bool told = day.as_of != base::WallTime{};
  std::string body = R"({"object":"usage","as_of":)" + (told ? seconds(day.as_of) : "null");
  body += R"(,"start_time":)" + seconds(day.ends_at - std::chrono::days(1));
  body += R"(,"end_time":)" + seconds(day.ends_at);
  body += R"(,"key":)" + part(caller.key_id, day.key) + R"(,"limits":{)" +
          day_limits(caller.key_per_day, day.key_taken) + "}}";
  body += R"(,"tenant":)" + part(caller.tenant->id, day.tenant);
  body += R"(,"limits":{"requests_per_minute":)" + window(rates.requests);
  body += R"(,"tokens_per_minute":)" + window(rates.tokens);
  body += R"(,"max_streams":)" + window(rates.streams);
  body += "," + day_limits(caller.tenant->limits.per_day, day.tenant_taken);
  return body + "}}}";
}

}  // namespace penstock::http
