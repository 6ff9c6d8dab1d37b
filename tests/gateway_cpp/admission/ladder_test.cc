#include "admission/ladder.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "admission/decision.h"

namespace penstock::admission {
namespace {

using Kind = routing::Rung::Kind;

const routing::Rung kTrim{.kind = Kind::kTrim};
const routing::Rung kReject{.kind = Kind::kReject};

routing::Rung fallback(const std::string& deployment) {
  return {.kind = Kind::kFallback, .deployment = deployment};
}

routing::DeploymentRoute with(std::vector<routing::Ladder> ladders) {
  routing::DeploymentRoute route{.name = "mini", .model = "weights", .adapters = {}, .limits = {}};
  route.ladders = std::move(ladders);
  return route;
}

bool anybody(const std::string& /*deployment*/) { return true; }

// All that comes, by the names of its deployments.
std::vector<std::string> walked(LadderWalk& walk, const LadderWalk::Fits& fits = anybody) {
  std::vector<std::string> names;
  while (walk.has_next(fits)) {
    const routing::Rung* rung = walk.next(fits);
    names.push_back(rung->kind == Kind::kTrim ? "trim" : rung->deployment);
  }
  EXPECT_EQ(walk.next(fits), nullptr);
  return names;
}

std::vector<std::string> walked(const routing::DeploymentRoute& route, DegradeReason reason,
                                const LadderWalk::Fits& fits = anybody) {
  LadderWalk walk(route, reason);
  return walked(walk, fits);
}

using Names = std::vector<std::string>;

TEST(Ladder, IsGoneDownInItsOrder) {
  const auto route = with({{"", {fallback("big"), fallback("bedrock"), fallback("canned")}}});
  EXPECT_EQ(walked(route, DegradeReason::kQueueFull), (Names{"big", "bedrock", "canned"}));
}

TEST(Ladder, OfAReasonGoesBeforeTheOneOfAllOthers) {
  const auto route =
      with({{"", {fallback("canned")}}, {"queue_full", {fallback("big")}}, {"budget", {}}});
  EXPECT_EQ(walked(route, DegradeReason::kQueueFull), Names{"big"});
  EXPECT_EQ(walked(route, DegradeReason::kQueueDeadline), Names{"canned"});
  EXPECT_EQ(walked(route, DegradeReason::kBudget), Names{});
}

TEST(Ladder, OfNobodyHasNoRung) {
  EXPECT_EQ(walked(with({}), DegradeReason::kQueueFull), Names{});
  EXPECT_EQ(walked(with({{"budget", {fallback("big")}}}), DegradeReason::kQueueFull), Names{});
}

TEST(Ladder, TrimsOnlyWhatIsTooLongAndNothingElseHelpsThat) {
  const auto route = with({{"", {kTrim, fallback("big")}}});
  for (std::size_t i = 0; i < kDegradeReasons; ++i) {
    const auto reason = static_cast<DegradeReason>(i);
    SCOPED_TRACE(name(reason));
    EXPECT_EQ(walked(route, reason), is_too_long(reason) ? Names{"trim"} : Names{"big"});
  }
}

TEST(Ladder, EndsWhereItRejects) {
  const auto route = with({{"", {fallback("big"), kReject, fallback("canned")}}});
  EXPECT_EQ(walked(route, DegradeReason::kQueueFull), Names{"big"});
}

TEST(Ladder, PassesOverWhoCannotHonourTheRequestAndItself) {
  const auto route = with({{"", {fallback("mini"), fallback("small"), fallback("big")}}});
  const auto fits = [](const std::string& deployment) { return deployment != "small"; };
  EXPECT_EQ(walked(route, DegradeReason::kQueueFull, fits), Names{"big"});
}

TEST(Ladder, TellsWhetherThereIsARungWithoutTakingIt) {
  const auto route = with({{"", {fallback("big")}}});
  LadderWalk walk(route, DegradeReason::kQueueFull);
  EXPECT_TRUE(walk.has_next(anybody));
  EXPECT_TRUE(walk.has_next(anybody));
  EXPECT_FALSE(walk.has_next([](const std::string&) { return false; }));
  EXPECT_NE(walk.next(anybody), nullptr);
  EXPECT_FALSE(walk.has_next(anybody));
}

TEST(Ladder, OfATrimmedRequestIsThatOfItsNewReason) {
  const auto route = with({{"", {kTrim, fallback("big")}}});
  LadderWalk walk(route, DegradeReason::kContextLength);
  EXPECT_EQ(walked(walk), Names{"trim"});
  walk.turn_to(DegradeReason::kQueueFull);
  EXPECT_EQ(walk.reason(), DegradeReason::kQueueFull);
  EXPECT_EQ(walked(walk), Names{"big"});
  walk.turn_to(DegradeReason::kTokenBudget);
  EXPECT_EQ(walked(walk), Names{}) << "no rung comes twice";
}

base::Error refused(DropReason reason, std::string_view param = {}) {
  return refusal_error("mini", {.reason = reason, .param = param});
}

TEST(DegradeReason, HasTheNameThatTheRefusalHas) {
  const std::set<DropReason> mended = {
      DropReason::kBudget,         DropReason::kScaledToZero, DropReason::kFailed,
      DropReason::kNoReadyReplica, DropReason::kModelLoading, DropReason::kMemoryPressure,
      DropReason::kQueueFull,      DropReason::kWaitExceeded, DropReason::kQueueDeadline};
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    const auto drop = static_cast<DropReason>(i);
    SCOPED_TRACE(name(drop));
    const auto reason = degrade_reason(refused(drop), "messages");
    EXPECT_EQ(reason.has_value(), mended.contains(drop));
    if (reason) {
      EXPECT_EQ(name(*reason), name(drop));
    }
  }
}

TEST(DegradeReason, OfTooManyTokensIsThePromptAlone) {
  const auto reason = [](std::string_view param) {
    return degrade_reason(refused(DropReason::kTokenBudget, param), "messages");
  };
  EXPECT_EQ(reason("messages"), DegradeReason::kTokenBudget);
  EXPECT_FALSE(reason("max_tokens"));
  EXPECT_FALSE(reason("n"));
}

base::Error replica_said(const std::string& code, base::Fault fault) {
  base::Error error = base::make_error(base::Kind::kUpstreamFailed, "no", "messages");
  error.code = code;
  error.fault = fault;
  return error;
}

TEST(DegradeReason, OfWhatAReplicaSaysIsItsFaultOrThePromptsLength) {
  const auto reason = [](const base::Error& error) { return degrade_reason(error, "messages"); };
  EXPECT_EQ(reason(replica_said("context_length_exceeded", base::Fault::kClient)),
            DegradeReason::kContextLength);
  EXPECT_EQ(reason(replica_said("token_budget_exceeded", base::Fault::kClient)),
            DegradeReason::kTokenBudget);
  EXPECT_FALSE(reason(replica_said("invalid_value", base::Fault::kClient)));
  EXPECT_EQ(reason(replica_said("queue_full", base::Fault::kUpstream)),
            DegradeReason::kUpstreamFailed);
  EXPECT_EQ(reason(base::make_error(base::Kind::kDeadlineExceeded, "late")),
            DegradeReason::kUpstreamFailed);
}

TEST(DegradeReason, OfASuspectIsTheEngineThatDied) {
  EXPECT_EQ(degrade_reason(base::make_error(base::Kind::kEngineDead, ""), "messages"),
            DegradeReason::kEngineDead);
  EXPECT_EQ(degrade_reason(base::make_error(base::Kind::kQuarantined, ""), "messages"),
            DegradeReason::kEngineDead);
}

TEST(DegradeReason, IsNoneWhereTheRequestOrTheGatewayIsAtFault) {
  for (const auto kind :
       {base::Kind::kClientGone, base::Kind::kDraining, base::Kind::kModelNotFound,
        base::Kind::kInternal, base::Kind::kOverloaded, base::Kind::kAdapterUnknown}) {
    EXPECT_FALSE(degrade_reason(base::make_error(kind, ""), "messages")) << traits(kind).name;
  }
}

// Any ladders, any reasons, any deployments that fit: a walk ends, and no rung comes twice.
TEST(Ladder, NeverGoesInCircles) {
  std::mt19937 random(12);
  const auto below = [&random](std::size_t bound) { return random() % bound; };
  const Names names = {"mini", "a", "b", "c", "d"};
  for (int round = 0; round < 2000; ++round) {
    std::vector<routing::Ladder> ladders;
    for (std::size_t i = 0; i < below(4); ++i) {
      const auto reason = static_cast<DegradeReason>(below(kDegradeReasons));
      routing::Ladder ladder{below(3) == 0 ? "" : std::string(name(reason)), {}};
      for (std::size_t j = 0; j < below(8); ++j) {
        const auto kind = below(10);
        ladder.rungs.push_back(kind == 0  ? kReject
                               : kind < 3 ? kTrim
                                          : fallback(names[below(names.size())]));
      }
      ladders.push_back(std::move(ladder));
    }
    const auto route = with(std::move(ladders));
    LadderWalk walk(route, static_cast<DegradeReason>(below(kDegradeReasons)));
    const auto fits = [&below](const std::string&) { return below(3) > 0; };
    std::set<std::string> seen;
    for (int turn = 0; turn < 6; ++turn) {
      while (const routing::Rung* rung = walk.next(fits)) {
        ASSERT_NE(rung->kind, Kind::kReject);
        ASSERT_NE(rung->deployment, "mini");
        ASSERT_EQ(rung->kind == Kind::kTrim, is_too_long(walk.reason()));
        const auto what = rung->kind == Kind::kTrim ? "trim" : "to " + rung->deployment;
        ASSERT_TRUE(seen.insert(what).second) << what;
      }
      walk.turn_to(static_cast<DegradeReason>(below(kDegradeReasons)));
    }
  }
}

}  // namespace
}  // namespace penstock::admission
