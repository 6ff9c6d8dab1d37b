#include "http/usage_body.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace penstock::http {
namespace {

constexpr base::WallTime kDay{std::chrono::seconds(1'700'006'400)};

admission::Caller caller_of(admission::Tenant tenant, std::string key_id,
                            admission::DayAmount key_per_day = {}) {
  const auto limits = tenant.limits;
  return {std::make_shared<const admission::Tenant>(std::move(tenant)), std::move(key_id),
          std::make_shared<admission::TenantMeter>(limits), key_per_day};
}

std::string body_of(const admission::Caller& caller, const admission::DayStanding& day) {
  return usage_body(caller, day, caller.meter->rate_state({}));
}

TEST(UsageBody, TellsOfAKeyItsTenantAndWhatIsLeft) {
  const auto caller = caller_of({.id = "acme",
                                 .limits = {.requests_per_minute = 60,
                                            .tokens_per_minute = 1'000,
                                            .max_streams = 4,
                                            .per_day = {.tokens = 100, .nanousd = 3'000'000'000}}},
                                "key-1", {.nanousd = 1'000'000'000});
  const admission::UsageCounts key{.requests = 2,
                                   .rejected = 1,
                                   .prompt_tokens = 30,
                                   .completion_tokens = 12,
                                   .cached_tokens = 16,
                                   .cost_nanousd = 1'000'250'000};
  admission::UsageCounts tenant = key;
  tenant += key;
  EXPECT_EQ(body_of(caller, {kDay + std::chrono::milliseconds(90'700),
                             kDay + std::chrono::hours(24),
                             key,
                             tenant,
                             {.nanousd = 1'000'250'000},
                             {.tokens = 84, .nanousd = 2'000'500'000}}),
            R"({"object":"usage","as_of":1700006490,"start_time":1700006400,"end_time":1700092800,)"
            R"("key":{"id":"key-1","usage":{"num_model_requests":2,"num_limited_requests":1,)"
            R"("input_tokens":30,"input_cached_tokens":16,"output_tokens":12,"cost_usd":1.00025},)"
            R"("limits":{"tokens_per_day":null,"usd_per_day":{"limit":1.0,"remaining":0.0}}},)"
            R"("tenant":{"id":"acme","usage":{"num_model_requests":4,"num_limited_requests":2,)"
            R"("input_tokens":60,"input_cached_tokens":32,"output_tokens":24,"cost_usd":2.0005},)"
            R"("limits":{"requests_per_minute":{"limit":60,"remaining":60},)"
            R"("tokens_per_minute":{"limit":1000,"remaining":1000},)"
            R"("max_streams":{"limit":4,"remaining":4},)"
            R"("tokens_per_day":{"limit":100,"remaining":16},)"
            R"("usd_per_day":{"limit":3.0,"remaining":0.9995}}}})");
}

TEST(UsageBody, SaysNullWhereThereIsNoKeyNoLimitAndNoHeadYet) {
  const std::string body = body_of(caller_of({}, ""), {{}, kDay + std::chrono::hours(24), {}, {}});
  EXPECT_NE(body.find(R"("as_of":null)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("key":{"id":null,)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("cost_usd":0.0},)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("tokens_per_day":null)"), std::string::npos) << body;
}

TEST(UsageBody, NeverHasLessThanNothingLeft) {
  const auto caller = caller_of({.id = "acme", .limits = {.per_day = {.tokens = 5}}}, "k");
  const admission::UsageCounts had{.prompt_tokens = 9};
  EXPECT_NE(body_of(caller, {kDay, kDay, had, had, {}, {.tokens = 9}})
                .find(R"("limit":5,"remaining":0})"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::http
