#include "routing/adapter_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "routing/hashing.h"

namespace penstock::routing {
namespace {

using Shares = std::vector<AdapterShare>;

Shares shares_of(const std::vector<std::uint32_t>& weights) {
  Shares shares;
  for (const std::uint32_t weight : weights) {
    shares.push_back({"pirate@" + std::to_string(shares.size() + 1), weight});
  }
  return shares;
}

// Of so many sessions, those of each share.
std::vector<int> counts(const Shares& shares, int sessions) {
  std::vector<int> counts(shares.size());
  for (int i = 0; i < sessions; ++i) {
    ++counts[share_for(shares, hash_text("session " + std::to_string(i)))];
  }
  return counts;
}

double moved(const Shares& from, const Shares& to, int sessions) {
  int moved = 0;
  for (int i = 0; i < sessions; ++i) {
    const auto hash = hash_text("session " + std::to_string(i));
    moved += from[share_for(from, hash)].adapter != to[share_for(to, hash)].adapter;
  }
  return double(moved) / sessions;
}

TEST(AdapterSplit, EachVersionGetsItsShare) {
  constexpr int kSessions = 100'000;
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint32_t> weights(1 + random.below(8));
    for (auto& weight : weights) weight = 1 + static_cast<std::uint32_t>(random.below(1000));
    const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
    const auto got = counts(shares_of(weights), kSessions);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double share = weights[i] / whole;
      // Five standard deviations.
      const double off = 5 * std::sqrt(share * (1 - share) * kSessions) + 1;
      EXPECT_NEAR(got[i], share * kSessions, off) << i << " of " << weights.size();
    }
  }
}

TEST(AdapterSplit, ASessionStaysWithItsVersion) {
  const Shares shares = shares_of({90, 10});
  for (std::uint64_t hash = 0; hash < 1000; ++hash) {
    EXPECT_EQ(share_for(shares, hash), share_for(shares, hash));
  }
}

TEST(AdapterSplit, BetweenTwoVersionsNoMoreSessionsMoveThanWeightDoes) {
  constexpr int kSessions = 50'000;
  for (std::uint32_t then = 1; then < 100; then += 14) {
    for (std::uint32_t now = 1; now < 100; now += 14) {
      const double least = std::abs(double(then) - now) / 100;
      EXPECT_NEAR(moved(shares_of({then, 100 - then}), shares_of({now, 100 - now}), kSessions),
                  least, 0.01)
          << then << " to " << now;
    }
  }
}

TEST(AdapterSplit, WhatComesOrGoesMovesOnlyWhatItTakesOrLeaves) {
  const Shares alone = {{"pirate@1", 1}};
  for (const char* newcomer : {"pirate@0", "pirate@2"}) {
    Shares both = {{"pirate@1", 95}, {newcomer, 5}};
    std::ranges::sort(both, {}, &AdapterShare::adapter);
    EXPECT_NEAR(moved(alone, both, 50'000), 0.05, 0.005);
    EXPECT_NEAR(moved(both, alone, 50'000), 0.05, 0.005);
  }
}

TEST(AdapterSplit, MultiplesOfTheSameWeightsAreTheSameShares) {
  EXPECT_EQ(moved(shares_of({9, 1}), shares_of({900, 100}), 10'000), 0);
}

TEST(AdapterSplit, HangsTogetherWithNothingElseThatIsDoneByTheSameHash) {
  const Shares shares = shares_of({50, 50});
  int both = 0;
  for (std::uint64_t hash = 0; hash < 10'000; ++hash) {
    both += share_for(shares, hash) == 0 && mix(hash) >> 63U == 0;
  }
  EXPECT_NEAR(both, 2'500, 250);
}

TEST(AdapterSplit, ReachesTheEndsOfTheIntervalAndNothingBeyond) {
  const Shares shares = shares_of({1, 0xffffffffU, 1});
  Random random(7);
  for (int i = 0; i < 100'000; ++i) EXPECT_LT(share_for(shares, random.next()), 3U);
  EXPECT_EQ(share_for(shares_of({0, 0}), 5), 0U);
  EXPECT_EQ(share_for({}, 5), 0U);
}

TEST(AdapterSplit, TheLargestShareIsTheFirstOfEqualOnes) {
  EXPECT_EQ(largest_share(shares_of({10, 90})), 1U);
  EXPECT_EQ(largest_share(shares_of({5, 7, 7})), 1U);
  EXPECT_EQ(largest_share({}), 0U);
}

}  // namespace
}  // namespace penstock::routing
