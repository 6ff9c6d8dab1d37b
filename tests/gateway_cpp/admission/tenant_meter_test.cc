#include "admission/tenant_meter.h"

#include <gtest/gtest.h>

#include <array>
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
  EXPECT_EQ(refusal.retry_after, std::chrono::hours(1));
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
                               .share_permille = 250,
                               .max_streams_here = 1});
  const RateState state = meter->rate_state(at(milliseconds(0)));
  EXPECT_EQ(state.requests->limit, 2U);
  EXPECT_EQ(state.tokens->limit, 250U);
  auto one = reserved(*meter, 1);
  EXPECT_TRUE(one);
  EXPECT_EQ(refused(*meter, 1).detail, "1 requests under way in this gateway, its part of 3");
}

TEST(TenantMeter, RequestsUnderWayAreByTheShareUntilAPartIsTold) {
  const auto meter = meter_of({.max_streams = 8, .share_permille = 250});
  auto one = reserved(*meter, 1);
  auto two = reserved(*meter, 1);
  EXPECT_FALSE(reserved(*meter, 1));
  meter->set_limits({.max_streams = 4, .max_streams_here = 3}, at(milliseconds(0)));
  auto three = reserved(*meter, 1);
  EXPECT_TRUE(three);
  EXPECT_FALSE(reserved(*meter, 1));
  meter->set_limits({.max_streams = 4, .max_streams_here = 2}, at(milliseconds(0)));
  one.reset();
  EXPECT_FALSE(reserved(*meter, 1)) << "what was begun under the larger part counts";
  two.reset();
  EXPECT_TRUE(reserved(*meter, 1));
  meter->set_limits({.max_streams = 1, .max_streams_here = 2}, at(milliseconds(0)));
  EXPECT_FALSE(reserved(*meter, 1)) << "no part is more than the whole";
}

TEST(TenantMeter, AShareOfWholeRequestsIsNotCutByHowSharesAreTold) {
  const auto share = [](std::uint32_t limit, std::uint32_t permille) {
    const auto meter = meter_of({.requests_per_minute = limit, .share_permille = permille});
    return meter->rate_state(at(milliseconds(0))).requests->limit;
  };
  EXPECT_EQ(share(6, 333), 2U);
  EXPECT_EQ(share(9, 333), 3U);
  EXPECT_EQ(share(30'000, 333), 9990U);
  EXPECT_EQ(share(4, 333), 1U);
  EXPECT_EQ(share(7, 1000), 7U);
  EXPECT_EQ(share(1, 1), 1U);
}

TEST(TenantMeter, NewLimitsKeepWhatIsLeftAndFillUpFromThere) {
  const auto meter = meter_of({.tokens_per_minute = 1000});
  const auto remaining = [&](seconds when) {
    return meter->rate_state(at(when)).tokens->remaining;
  };
  auto reservation = reserved(*meter, 400, at(seconds(100)));
  meter->set_limits({.tokens_per_minute = 1000, .share_permille = 500}, at(seconds(100)));
  EXPECT_EQ(remaining(seconds(100)), 500U);
  meter->set_limits({.tokens_per_minute = 1000}, at(seconds(1000)));
  EXPECT_EQ(remaining(seconds(1000)), 500U) << "a larger one holds no more at once";
  EXPECT_EQ(remaining(seconds(1015)), 750U) << "and fills at its own pace";
  meter->set_limits({}, at(seconds(1015)));
  EXPECT_FALSE(meter->rate_state(at(seconds(1015))).tokens);
  meter->set_limits({.tokens_per_minute = 100}, at(seconds(1015)));
  EXPECT_EQ(remaining(seconds(1015)), 100U);
}

TEST(TenantMeter, WhatIsOwedStaysWhereTheShareIsAnotherAndShrinksWithTheLimit) {
  const auto meter = meter_of({.tokens_per_minute = 6000});
  const auto reset = [&] { return meter->rate_state(at(seconds(0))).tokens->reset; };
  reserved(*meter, 6000)->settle(12'000, at(seconds(0)));
  EXPECT_EQ(reset(), seconds(120));
  meter->set_limits({.tokens_per_minute = 6000, .share_permille = 500}, at(seconds(0)));
  EXPECT_EQ(reset(), seconds(180)) << "the same debt, at half the pace";
  meter->set_limits({.tokens_per_minute = 60, .share_permille = 500}, at(seconds(0)));
  EXPECT_EQ(reset(), seconds(180)) << "not of a limit that is no more";
}

// However shares move between gateways, and whoever is asked.
TEST(TenantMeter, SharesThatMoveGiveNoMoreThanTheLimitTogether) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    constexpr std::uint32_t kLimit = 600;
    std::vector<std::shared_ptr<TenantMeter>> gateways;
    for (int i = 0; i < 3; ++i) {
      gateways.push_back(meter_of({.requests_per_minute = kLimit, .share_permille = 333}));
    }
    std::uint64_t given = 0;
    for (int second = 0; second < 60; ++second) {
      const std::uint32_t first = 80 + random() % 700;
      const std::uint32_t next = 80 + random() % (1000 - first - 79);
      const std::array shares = {first, next, 1000 - first - next};
      for (std::size_t i = 0; i < gateways.size(); ++i) {
        gateways[i]->set_limits({.requests_per_minute = kLimit, .share_permille = shares[i]},
                                at(seconds(second)));
      }
      const auto asked = gateways[random() % gateways.size()];
      while (reserved(*asked, 1, at(seconds(second)))) ++given;
      EXPECT_LE(given, kLimit + kLimit * second / 60 + gateways.size()) << "seed " << seed;
    }
    EXPECT_GT(given, kLimit / 2);
  }
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
