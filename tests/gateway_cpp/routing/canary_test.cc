#include "routing/canary.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "routing/hashing.h"

namespace penstock::routing {
namespace {

// By name; empty: the deployment itself.
std::string canary_of(const std::vector<CanaryWeight>& weights, std::uint64_t hash) {
  const CanaryWeight* weight = canary_for(weights, hash);
  return weight != nullptr ? weight->deployment : "";
}

TEST(Canary, WithoutWeightsTheDeploymentItselfAnswers) { EXPECT_EQ(canary_of({}, 7), ""); }

TEST(Canary, EachGetsItsShare) {
  const std::vector<CanaryWeight> weights = {{"next", 100}, {"later", 250}};
  std::map<std::string, int> counts;
  for (std::uint64_t hash = 0; hash < 100'000; ++hash) ++counts[canary_of(weights, hash)];
  EXPECT_NEAR(counts["next"], 10'000, 500);
  EXPECT_NEAR(counts["later"], 25'000, 800);
  EXPECT_NEAR(counts[""], 65'000, 1'000);
}

TEST(Canary, ASessionKeepsItsCanaryWhileTheWeightGrows) {
  for (std::uint64_t hash = 1; hash < 10'000; ++hash) {
    const std::vector<CanaryWeight> small = {{"next", 50}};
    const std::vector<CanaryWeight> large = {{"next", 500}};
    if (canary_of(small, hash) == "next") {
      EXPECT_EQ(canary_of(large, hash), "next");
    }
  }
}

TEST(Canary, WeightsBeyondAWholeCountForNothing) {
  const std::vector<CanaryWeight> weights = {{"next", 1000}, {"later", 1000}};
  for (std::uint64_t hash = 0; hash < 1000; ++hash) EXPECT_EQ(canary_of(weights, hash), "next");
  const std::vector<CanaryWeight> none = {{"next", 0}};
  for (std::uint64_t hash = 0; hash < 1000; ++hash) EXPECT_EQ(canary_of(none, hash), "");
}

TEST(Canary, ARequestIsJudgedForItsAliasElseForItsDeployment) {
  DeploymentRoute mini{.name = "mini", .model = "m", .adapters = {}, .limits = {}};
  const auto judged = [&mini](std::string_view model) {
    const CanaryRule* rule = rule_for(mini, model);
    return rule == nullptr ? std::string() : rule->uid;
  };
  EXPECT_EQ(judged("mini"), "");
  mini.canary_rules = {{.uid = "of alias", .alias = "pirate"}};
  EXPECT_EQ(judged("mini"), "");
  EXPECT_EQ(judged("mini:pirate"), "of alias");
  mini.canary_rules.push_back({.uid = "of mini"});
  EXPECT_EQ(judged("mini"), "of mini");
  EXPECT_EQ(judged("mini:pirate"), "of alias");
  EXPECT_EQ(judged("mini:pirate@2"), "of mini");
  EXPECT_EQ(judged("mini:other"), "of mini");
}

TEST(Hashing, EveryByteOfABodyCountsAndItsLengthToo) {
  std::set<std::uint64_t> seen;
  for (const std::size_t size : {0U, 1U, 7U, 8U, 15U, 16U, 17U, 100U}) {
    std::string body(size, '\0');
    EXPECT_TRUE(seen.insert(hash_bytes(body)).second) << size;
    for (char& byte : body) {
      byte = 'x';
      EXPECT_TRUE(seen.insert(hash_bytes(body)).second) << size;
      byte = '\0';
    }
  }
}

TEST(Hashing, ABodysHashIsTheSameInEveryGateway) {
  EXPECT_EQ(hash_bytes(R"({"model":"mini","messages":[]})"), 0x1eeaf5d301cc54fcU);
}

}  // namespace
}  // namespace penstock::routing
