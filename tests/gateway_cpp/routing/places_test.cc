#include "routing/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "routing/hashing.h"

namespace penstock::routing {
namespace {

TEST(Places, OneGatewayFillsTheLimit) {
  EXPECT_TRUE(has_place({.limit = 4, .own = 3, .unseen = 3}));
  EXPECT_FALSE(has_place({.limit = 4, .own = 4}));
  EXPECT_TRUE(has_place({.limit = 0, .own = 4'000'000'000U}));
}

TEST(Places, AFirstCallIsNeverRefused) {
  EXPECT_TRUE(has_place({.limit = 10, .own = 0, .elsewhere = 99, .gateways = 2}));
  EXPECT_TRUE(has_place({.limit = 1, .own = 0, .elsewhere = 1, .gateways = 10}));
}

TEST(Places, WhatEndsGoesToThoseThatHaveLessThanTheirShare) {
  EXPECT_FALSE(has_place({.limit = 10, .own = 1, .elsewhere = 9, .gateways = 2}));
  EXPECT_TRUE(has_place({.limit = 10, .own = 1, .elsewhere = 8, .gateways = 2}));
  EXPECT_FALSE(has_place({.limit = 10, .own = 8, .elsewhere = 1, .gateways = 2}));
  EXPECT_TRUE(has_place({.limit = 10, .own = 4, .unseen = 4, .elsewhere = 5, .gateways = 2}));
}

TEST(Places, IdlePlacesOfOthersAreTakenButForThoseThatTheyMayBeTakingNow) {
  EXPECT_TRUE(has_place({.limit = 10, .own = 8, .unseen = 1, .gateways = 2}));
  EXPECT_FALSE(has_place({.limit = 10, .own = 9, .unseen = 1, .gateways = 2}));
  EXPECT_FALSE(has_place({.limit = 10, .own = 8, .unseen = 3, .gateways = 2}));
}

TEST(Places, AnEngineWhoseQueueIsNotEmptyGetsNoSecondCall) {
  EXPECT_FALSE(has_place({.limit = 10, .own = 1, .engine_full = true}));
  EXPECT_TRUE(has_place({.limit = 10, .own = 0, .engine_full = true}));
}

// Gateways before one replica, which tells each of them what it had a while ago.
class SharedReplica {
 public:
  struct Gateway {
    std::uint32_t own = 0, unseen = 0, elsewhere = 0;
    std::uint32_t wanted = 0;       // calls that it would send
    std::uint32_t most_waited = 0;  // ticks in a row in which it had work and no call at all
    std::uint32_t waits = 0;
  };
  SharedReplica(std::uint32_t limit, std::size_t gateways, std::size_t delay, std::uint64_t seed)
      : limit_(limit), delay_(delay), random_(seed), gateways_(gateways) {}

  // Bursts come, calls end, reports arrive; some in order, each as late as it may be.
  void tick() {
    Gateway& bursting = gateways_[random_.below(gateways_.size())];
    if (random_.below(4) == 0) bursting.wanted += random_.below(2 * limit_);
    for (Gateway& gateway : gateways_) {
      end_some(gateway);
      send(gateway);
    }
    told_.push_back(own_calls());
    for (std::size_t i = 0; i < gateways_.size(); ++i) hear(i);
    if (told_.size() > delay_ + 1) told_.pop_front();
    most_ = std::max(most_, total());
  }

  std::uint32_t total() const {
    const auto own = own_calls();
    return std::accumulate(own.begin(), own.end(), 0U);
  }
  std::uint32_t most() const { return most_; }
  const std::vector<Gateway>& gateways() const { return gateways_; }

 private:
  std::vector<std::uint32_t> own_calls() const {
    std::vector<std::uint32_t> own;
    for (const Gateway& gateway : gateways_) own.push_back(gateway.own);
    return own;
  }
  void end_some(Gateway& gateway) {
    for (std::uint32_t call = gateway.own; call > 0; --call) {
      if (random_.below(10) == 0) --gateway.own;
    }
  }
  void send(Gateway& gateway) {
    while (gateway.wanted > 0 &&
           has_place({.limit = limit_,
                      .own = gateway.own,
                      .unseen = std::min(gateway.unseen, gateway.own),
                      .elsewhere = gateway.elsewhere,
                      .gateways = static_cast<std::uint32_t>(gateways_.size())})) {
      --gateway.wanted, ++gateway.own, ++gateway.unseen;
    }
    gateway.waits = gateway.wanted > 0 && gateway.own == 0 ? gateway.waits + 1 : 0;
    gateway.most_waited = std::max(gateway.most_waited, gateway.waits);
  }
  void hear(std::size_t i) {
    if (told_.size() <= delay_ || random_.below(2) == 0) return;
    const auto& calls = told_.front();
    Gateway& gateway = gateways_[i];
    gateway.unseen = gateway.own - std::min(gateway.own, calls[i]);
    gateway.elsewhere = std::accumulate(calls.begin(), calls.end(), 0U) - calls[i];
  }

  std::uint32_t limit_;
  std::size_t delay_;
  Random random_;
  std::vector<Gateway> gateways_;
  std::deque<std::vector<std::uint32_t>> told_;
  std::uint32_t most_ = 0;
};

TEST(SharedPlaces, TenGatewaysThatHearLateNeitherStarveNorOverfill) {
  constexpr std::uint32_t kGateways = 10;
  for (const std::uint32_t limit : {1U, 4U, 10U, 64U, 256U}) {
    for (const std::size_t delay : {0U, 1U, 5U, 20U}) {
      SharedReplica shared(limit, kGateways, delay, 7 + delay);
      std::uint64_t sum = 0;
      constexpr int kTicks = 5000;
      for (int i = 0; i < kTicks; ++i) {
        shared.tick();
        sum += std::min(shared.total(), limit);
      }
      SCOPED_TRACE(testing::Message()
                   << "limit " << limit << " delay " << delay << " most " << shared.most());
      const std::uint32_t share = std::max(1U, limit / kGateways);
      EXPECT_LE(shared.most(), limit + (kGateways - 1) * share);
      if (limit >= 64) {
        EXPECT_LE(shared.most(), limit * 8 / 7);
      }
      for (const auto& gateway : shared.gateways()) EXPECT_EQ(gateway.most_waited, 0U);
      EXPECT_GT(sum, std::uint64_t{limit} * kTicks / 2) << "places stay idle";
    }
  }
}

// Each has work from then on, and long calls end one at a time.
TEST(SharedPlaces, GatewaysThatComeOneAfterTheOtherAddAFirstCallEachAndComeToTheirShares) {
  constexpr std::uint32_t kLimit = 6;
  std::vector<std::uint32_t> own;
  const auto send = [&] {
    for (std::uint32_t& here : own) {
      const auto total = [&] { return std::accumulate(own.begin(), own.end(), 0U); };
      while (has_place({.limit = kLimit,
                        .own = here,
                        .elsewhere = total() - here,
                        .gateways = static_cast<std::uint32_t>(own.size())})) {
        ++here;
      }
    }
  };
  for (const std::uint32_t expected : {6U, 7U, 8U}) {
    own.push_back(0);
    send();
    EXPECT_EQ(std::accumulate(own.begin(), own.end(), 0U), expected);
  }
  EXPECT_EQ(own, (std::vector<std::uint32_t>{6, 1, 1}));
  while (own[0] > 2) {
    --own[0];
    send();
  }
  EXPECT_EQ(own, (std::vector<std::uint32_t>{2, 2, 2}));
}

TEST(SharedPlaces, GatewaysThatAllHaveWorkShareEvenly) {
  SharedReplica shared(100, 10, 5, 3);
  for (int i = 0; i < 20'000; ++i) shared.tick();
  for (const auto& gateway : shared.gateways()) {
    if (gateway.wanted > 0) {
      EXPECT_GE(gateway.own, 5U);
    }
  }
}

}  // namespace
}  // namespace penstock::routing
