// What each pattern does to requests that come one by one, and to many.
#include "simulation/cluster.h"

#include <gtest/gtest.h>

namespace penstock::simulation {
namespace {

// So far apart that none meets another.
const PatternLoad kAlone{.rate = 1e-3, .requests = 20};

double first_token(const Machine& machine, Pattern pattern, const PatternLoad& load = kAlone) {
  Latencies latencies;
  Cluster(machine, pattern, load).run(latencies);
  EXPECT_NEAR(latencies.first_token.at(0), latencies.first_token.at(1), 1e-6);
  return latencies.first_token.mean();
}

double chunk_seconds(std::uint32_t tokens, double before) {
  return seconds_of(
      {.prefill_tokens = tokens, .pairs = tokens * before + tokens * (tokens + 1.0) / 2},
      kA100.costs);
}

TEST(LinkUse, OnlyWhatIsLeftAfterAStepCountsWhereTheLinkIsFast) {
  LinkUse link({.bytes_a_token = 10, .bytes_a_second = 1000, .layers = 10});
  EXPECT_DOUBLE_EQ(link.arrival(100, 0, 5), 5 + 0.1);  // the last of ten layers, of a second in all
}

TEST(LinkUse, ASlowLinkSendsOneChunkAfterTheOther) {
  LinkUse link({.bytes_a_token = 10, .bytes_a_second = 100, .layers = 10});
  EXPECT_DOUBLE_EQ(link.arrival(100, 0, 5), 0.5 + 10);
  EXPECT_DOUBLE_EQ(link.arrival(100, 5, 10), 10.5 + 10);
}

TEST(Cluster, ARequestAloneHasItsFirstTokenAfterItsChunks) {
  const double chunks = chunk_seconds(2048, 0) + chunk_seconds(952, 2048);
  EXPECT_NEAR(first_token(kA100, Pattern::kDataParallel), chunks, 1e-6);
}

TEST(Cluster, WithPrefillElsewhereItHasItOnceKvHasComeAndTheRestIsComputed) {
  const double prefill = chunk_seconds(2048, 0) + chunk_seconds(2992 + 1 - 2048, 2048);
  const double last_layer = 945 * kA100.link.bytes_a_token / kA100.link.bytes_a_second / 32;
  const double decode = chunk_seconds(8, 2992);
  EXPECT_NEAR(first_token(kA100, Pattern::kPrefillDecode),
              prefill + last_layer + decode + 2 * kA100.link.call, 1e-6);
  Machine slow = kA100;
  slow.link.bytes_a_second /= 1000;
  EXPECT_GT(first_token(slow, Pattern::kPrefillDecode),
            2992 * slow.link.bytes_a_token / slow.link.bytes_a_second);
}

TEST(Cluster, OfAPromptOfWholeBlocksTheLastIsLeftToTheDecodingEngine) {
  PatternLoad load = kAlone;
  load.prompt = 1024;
  EXPECT_NEAR(first_token(kA100, Pattern::kPrefillDecode, load) -
                  (chunk_seconds(1008 + 1, 0) + chunk_seconds(16, 1008) + 2 * kA100.link.call),
              1009 * kA100.link.bytes_a_token / kA100.link.bytes_a_second / 32, 1e-6);
}

TEST(Cluster, ABalancedPromptIsComputedInBothEnginesByItsShares) {
  PatternLoad load = kAlone;
  load.balance = 0.1;
  const double prefill = chunk_seconds(2048, 0) + chunk_seconds(2688 + 1 - 2048, 2048);
  const double last_layer = 641 * kA100.link.bytes_a_token / kA100.link.bytes_a_second / 32;
  EXPECT_NEAR(first_token(kA100, Pattern::kPrefillDecode, load),
              prefill + last_layer + chunk_seconds(312, 2688) + 2 * kA100.link.call, 1e-6);
}

TEST(Cluster, EachRequestIsAnsweredByEachPatternAndTheSameSeedGivesTheSameFigures) {
  for (const Pattern pattern :
       {Pattern::kDataParallel, Pattern::kPrefillDecode, Pattern::kDoubleEngine}) {
    Latencies once;
    Latencies again;
    const PatternLoad load{.rate = 4, .requests = 300, .balance = 0.1};
    Cluster(kA100, pattern, load).run(once);
    Cluster(kA100, pattern, load).run(again);
    EXPECT_EQ(once.whole.size(), 300U);
    EXPECT_GT(once.first_token.at(0), 0);
    EXPECT_GT(once.whole.at(0), once.first_token.at(0));
    EXPECT_EQ(once.whole.at(0.99), again.whole.at(0.99));
  }
}

TEST(Cluster, OneThatPrefillsMoreThanItCanIsToldAsGrowing) {
  Latencies latencies;
  Cluster(kA100, Pattern::kPrefillDecode, {.rate = 8, .requests = 500}).run(latencies);
  EXPECT_TRUE(latencies.grows);
}

TEST(Cluster, WhereTheDecodingEngineHasRoomForOneRequestThePrefillOfTheNextWaits) {
  Machine small = kA100;
  small.limits.blocks = 200;  // of 194 that one takes
  Latencies latencies;
  Cluster(small, Pattern::kPrefillDecode, {.rate = 1e6, .requests = 2}).run(latencies);
  EXPECT_GT(latencies.first_token.at(1), latencies.whole.at(0));
}

}  // namespace
}  // namespace penstock::simulation
