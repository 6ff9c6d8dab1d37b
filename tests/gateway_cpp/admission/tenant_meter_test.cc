#include "admission/tenant_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace penstock::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::WallTime kToday{seconds(1'700'000'000)};

base::SteadyTime at(milliseconds time) { return base::SteadyTime(seconds(1000) + time); }

std::shared_ptr<TenantMeter> meter_of(const TenantLimits& limits) {
  return std::make_shared<TenantMeter>(limits);
}

// Nothing where it was refused.
std::optional<TenantReservation> reserved(TenantMeter& meter, std::uint64_t tokens,
                                          base::SteadyTime now = at(milliseconds(0))) {
  auto outcome = meter.reserve(tokens, now, kToday);
  auto* reservation = std::get_if<TenantReservation>(&outcome);
  if (reservation == nullptr) return std::nullopt;
  return std::move(*reservation);
}

Refusal refused(TenantMeter& meter, std::uint64_t tokens,
                base::SteadyTime now = at(milliseconds(0)), base::WallTime wall = kToday) {
  const auto outcome = meter.reserve(tokens, now, wall);
  const auto* refusal = std::get_if<Refusal>(&outcome);
  if (refusal == nullptr) ADD_FAILURE() << "not refused";
  return refusal == nullptr ? Refusal{DropReason::kClientGone} : *refusal;
}

TEST(TenantMeter, WithoutLimitsTakesAll) {
  const auto meter = meter_of({});
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(reserved(*meter, 1'000'000));
  const RateState state = meter->rate_state(at(milliseconds(0)));
  EXPECT_FALSE(state.requests);
  EXPECT_FALSE(state.tokens);
}

TEST(TenantMeter, AMinutesRequestsMayComeAtOnceAndNoMore) {
  const auto meter = meter_of({.requests_per_minute = 60});
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(reserved(*meter, 1)) << i;
  const Refusal refusal = refused(*meter, 1);
  EXPECT_EQ(refusal.reason, DropReason::kRateLimited);
  EXPECT_EQ(refusal.retry_after, seconds(1));
  EXPECT_NE(refusal.detail.find("60 requests a minute"), std::string::npos) << refusal.detail;
  EXPECT_TRUE(reserved(*meter, 1, at(seconds(1)))) << "as it was told";
  EXPECT_FALSE(reserved(*meter, 1, at(seconds(1))));
}

TEST(TenantMeter, TokensAreTakenAsEstimatedAndCorrected) {
  const auto meter = meter_of({.tokens_per_minute = 1000});
  auto first = reserved(*meter, 800);
  ASSERT_TRUE(first);
  const Refusal refusal = refused(*meter, 500);
  EXPECT_EQ(refusal.retry_after, seconds(18)) << "300 of 1000 a minute";
  first->settle(300, at(milliseconds(0)));
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 700U);
  EXPECT_TRUE(reserved(*meter, 500));
}

TEST(TenantMeter, WhatWasTooLittleIsADebt) {
  const auto meter = meter_of({.tokens_per_minute = 600});
  reserved(*meter, 100)->settle(1200, at(milliseconds(0)));
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 0U);
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->reset, seconds(120));
  EXPECT_EQ(refused(*meter, 1).retry_after, seconds(60)) << "60.1 s: no longer is told";
  EXPECT_FALSE(reserved(*meter, 1, at(milliseconds(60'000))));
  EXPECT_TRUE(reserved(*meter, 1, at(milliseconds(60'100))));
}

TEST(TenantMeter, ARequestOverAMinutesWorthGoesWhenAllIsThere) {
  const auto meter = meter_of({.tokens_per_minute = 100});
  EXPECT_TRUE(reserved(*meter, 250));
  EXPECT_EQ(refused(*meter, 250).retry_after, seconds(60));
  EXPECT_FALSE(reserved(*meter, 250, at(seconds(149))));
  EXPECT_TRUE(reserved(*meter, 250, at(seconds(150))));
}

TEST(TenantMeter, OneRefusedTakesNothing) {
  const auto meter = meter_of({.requests_per_minute = 10, .tokens_per_minute = 100});
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(reserved(*meter, 60) && reserved(*meter, 60)) << "two are too many tokens";
  }
  EXPECT_EQ(meter->streams(), 0U);
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).requests->remaining, 9U);
}

TEST(TenantMeter, RequestsUnderWayAreLimited) {
  const auto meter = meter_of({.max_streams = 2});
  auto first = reserved(*meter, 10);
  auto second = reserved(*meter, 10);
  EXPECT_EQ(refused(*meter, 10).reason, DropReason::kRateLimited);
  first->settle(5, at(milliseconds(0)));
  auto third = reserved(*meter, 10);
  EXPECT_TRUE(third);
  second.reset();
  EXPECT_TRUE(reserved(*meter, 10)) << "one that ends unsettled is no longer under way either";
  EXPECT_EQ(meter->streams(), 1U);
}

TEST(TenantMeter, AReservationIsSettledOnce) {
  const auto meter = meter_of({.tokens_per_minute = 1000, .max_streams = 5});
  auto reservation = reserved(*meter, 500);
  TenantReservation moved = std::move(*reservation);
  EXPECT_TRUE(reservation->settled());
  reservation->settle(1, at(milliseconds(0)));
  moved.settle(100, at(milliseconds(0)));
  moved.settle(100, at(milliseconds(0)));
  EXPECT_TRUE(moved.settled());
  EXPECT_EQ(meter->streams(), 0U);
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 900U);
}

TEST(TenantMeter, OneThatEndsUnsettledCostsWhatWasReserved) {
  const auto meter = meter_of({.tokens_per_minute = 1000});
  {
    auto reservation = reserved(*meter, 300);
    TenantReservation other;
    other = std::move(*reservation);
  }
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 700U);
}

TEST(TenantMeter, AReservationOutlivesTheTableThatGaveIt) {
  auto meter = meter_of({.tokens_per_minute = 1000});
  auto reservation = reserved(*meter, 300);
  meter.reset();
  reservation->settle(100, at(milliseconds(0)));
  EXPECT_TRUE(reservation->settled());
}

TEST(TenantMeter, AQuotaThatIsUsedUpIsToldUntilItsDayIsOver) {
  const auto meter =
      meter_of({.quota_used_up = true, .quota_resets_at = kToday + std::chrono::hours(1)});
  const Refusal refusal = refused(*meter, 1);
  EXPECT_EQ(refusal.reason, DropReason::kQuota);
  EXPECT_EQ(refusal.retry_after, milliseconds(0));
  EXPECT_TRUE(std::holds_alternative<TenantReservation>(
      meter->reserve(1, at(milliseconds(0)), kToday + std::chrono::hours(1))));
}

TEST(TenantMeter, AQuotaWithoutAnEndStays) {
  EXPECT_EQ(refused(*meter_of({.quota_used_up = true}), 1).reason, DropReason::kQuota);
}

TEST(TenantMeter, AGatewayGrantsItsShareAndAtLeastOne) {
  const auto meter = meter_of({.requests_per_minute = 10,
                               .tokens_per_minute = 1000,
                               .max_streams = 3,
                               .share_permille = 250});
  const RateState state = meter->rate_state(at(milliseconds(0)));
  EXPECT_EQ(state.requests->limit, 2U);
  EXPECT_EQ(state.tokens->limit, 250U);
  auto one = reserved(*meter, 1);
  EXPECT_TRUE(one);
  EXPECT_FALSE(reserved(*meter, 1)) << "750 thousandths of a stream are one";
}

TEST(TenantMeter, NewLimitsKeepWhatIsLeftInProportion) {
  const auto meter = meter_of({.tokens_per_minute = 1000});
  auto reservation = reserved(*meter, 400);
  meter->set_limits({.tokens_per_minute = 1000, .share_permille = 500});
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 300U);
  meter->set_limits({});
  EXPECT_FALSE(meter->rate_state(at(milliseconds(0))).tokens);
  meter->set_limits({.tokens_per_minute = 100});
  EXPECT_EQ(meter->rate_state(at(milliseconds(0))).tokens->remaining, 100U);
}

TEST(TenantMeter, AnEarlierTimeThanTheLastFillsNothing) {
  const auto meter = meter_of({.requests_per_minute = 60});
  EXPECT_TRUE(reserved(*meter, 1, at(seconds(10))));
  EXPECT_TRUE(reserved(*meter, 1, at(seconds(5))));
  EXPECT_EQ(meter->rate_state(at(seconds(5))).requests->remaining, 58U);
}

// What is reserved and settled at random on many threads is right to the token in the end.
TEST(TenantMeter, NothingLeaksAcrossThreads) {
  constexpr std::uint32_t kLimit = 4'000'000'000;
  const auto meter =
      meter_of({.requests_per_minute = kLimit, .tokens_per_minute = kLimit, .max_streams = 6});
  std::atomic<std::uint64_t> cost{0};
  std::atomic<std::uint64_t> granted{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, random = std::mt19937_64(seed)]() mutable {
      for (int i = 0; i < 2000; ++i) {
        auto reservation = reserved(*meter, random() % 1000);
        EXPECT_LE(meter->streams(), 6U);
        if (!reservation) continue;
        granted.fetch_add(1);
        const std::uint64_t tokens = random() % 1500;
        const bool settles = random() % 4 != 0;
        cost.fetch_add(settles ? tokens : reservation->tokens());
        if (settles) reservation->settle(tokens, at(milliseconds(0)));
        if (i % 50 == 0) meter->rate_state(at(milliseconds(0)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const RateState state = meter->rate_state(at(milliseconds(0)));
  EXPECT_EQ(meter->streams(), 0U);
  EXPECT_EQ(state.tokens->remaining, kLimit - cost.load());
  EXPECT_EQ(state.requests->remaining, kLimit - granted.load());
}

TEST(ResetText, IsAsOpenAisClientsReadIt) {
  EXPECT_EQ(reset_text(milliseconds(0)), "0ms");
  EXPECT_EQ(reset_text(milliseconds(170)), "170ms");
  EXPECT_EQ(reset_text(milliseconds(1000)), "1s");
  EXPECT_EQ(reset_text(milliseconds(59'001)), "1m0s");
  EXPECT_EQ(reset_text(milliseconds(360'000)), "6m0s");
  EXPECT_EQ(reset_text(milliseconds(61'500)), "1m2s");
}

}  // namespace
}  // namespace penstock::admission
