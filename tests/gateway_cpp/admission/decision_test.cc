#include "admission/decision.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock::admission {
namespace {

using base::Priority;
using std::chrono::milliseconds;
using std::chrono::seconds;

DeploymentAsk plain() { return {.deployment = "mini"}; }

DeploymentLoad with_room() { return {.ready = 2, .with_room = 1}; }

DeploymentLoad busy(std::uint32_t queued, milliseconds wait) {
  return {.ready = 2, .with_room = 0, .queued = queued, .estimated_wait = wait};
}

Refusal refused(const DeploymentAsk& ask, const DeploymentLoad& load) {
  const Placement placement = decide_place(ask, load);
  const auto* refusal = std::get_if<Refusal>(&placement);
  if (refusal == nullptr) ADD_FAILURE() << "not refused";
  return refusal == nullptr ? Refusal{DropReason::kClientGone} : *refusal;
}

bool waits(const DeploymentAsk& ask, const DeploymentLoad& load) {
  return std::holds_alternative<Queued>(decide_place(ask, load));
}

TEST(Door, LetsInWhileThereIsRoom) {
  EXPECT_FALSE(decide_at_door({.in_flight = 9, .max_in_flight = 10}));
  EXPECT_FALSE(decide_at_door({.in_flight = 1'000'000, .max_in_flight = 0})) << "no limit";
}

TEST(Door, SaysFirstThatTheGatewayGoesAway) {
  const auto refusal = decide_at_door({.draining = true, .in_flight = 10, .max_in_flight = 10});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, DropReason::kDraining);
}

TEST(Door, AFullGatewayIs503) {
  const auto refusal = decide_at_door({.in_flight = 10, .max_in_flight = 10});
  ASSERT_TRUE(refusal);
  const base::Error error = refusal_error("", *refusal);
  EXPECT_EQ(error.status, 503U);
  EXPECT_EQ(error.drop_reason, "gateway_full");
  EXPECT_EQ(error.retry_after, seconds(1));
}

TEST(Place, IsHadAtOnceWhereThereIsRoomAndNobodyWaits) {
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(plain(), with_room())));
}

TEST(Place, NobodyOvertakesThoseThatWait) {
  DeploymentLoad load = with_room();
  load.queued = 1;
  EXPECT_TRUE(waits(plain(), load));
}

TEST(Place, WithoutRoomARequestWaitsAndIsToldHowLong) {
  const Placement placement = decide_place(plain(), busy(3, milliseconds(1500)));
  ASSERT_TRUE(std::holds_alternative<Queued>(placement));
  EXPECT_EQ(std::get<Queued>(placement).estimated_wait, milliseconds(1500));
}

struct Case {
  const char* name;
  void (*change)(DeploymentAsk&, DeploymentLoad&);
  DropReason reason;
  unsigned status;
  const char* code;
  const char* drop_reason;
  bool again;        // the same request may succeed later
  const char* says;  // part of the message
  const char* param = "";
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.name; }

class NoPlace : public testing::TestWithParam<Case> {};

TEST_P(NoPlace, SaysWhyAndWhenToComeBack) {
  DeploymentAsk ask = plain();
  DeploymentLoad load = with_room();
  GetParam().change(ask, load);
  const Refusal refusal = refused(ask, load);
  EXPECT_EQ(refusal.reason, GetParam().reason);
  const base::Error error = refusal_error(ask.deployment, refusal, "its weights are gone");
  EXPECT_EQ(error.status, GetParam().status);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.drop_reason, GetParam().drop_reason);
  EXPECT_EQ(error.param, GetParam().param);
  EXPECT_EQ(error.client_may_retry, GetParam().again);
  EXPECT_NE(error.message.find("`mini`"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(GetParam().says), std::string::npos) << error.message;
  if (GetParam().again) {
    EXPECT_GE(error.retry_after, seconds(1));
    EXPECT_LE(error.retry_after, seconds(60));
  } else {
    EXPECT_EQ(error.retry_after, milliseconds(0));
  }
}

// Each stands as all that come after it do, too, but for the last.
INSTANTIATE_TEST_SUITE_P(
    Reasons, NoPlace,
    testing::Values(
        Case{"ScaledToZero",
             [](DeploymentAsk&, DeploymentLoad& load) {
               load = {.queued = 1000, .availability = base::Availability::kScaledToZero};
             },
             DropReason::kScaledToZero, 503, "scaled_to_zero", "scaled_to_zero", false,
             "once an operator gives it some"},
        Case{"Failed",
             [](DeploymentAsk&, DeploymentLoad& load) {
               load = {.queued = 1000, .availability = base::Availability::kFailed};
             },
             DropReason::kFailed, 503, "deployment_failed", "deployment_failed", false,
             "its weights are gone"},
        Case{"TriedAgain",
             [](DeploymentAsk&, DeploymentLoad& load) {
               load = {.availability = base::Availability::kFailed,
                       .ready_in = milliseconds(12'000)};
             },
             DropReason::kFailed, 503, "deployment_failed", "deployment_failed", true,
             "its weights are gone"},
        Case{"NoneReady",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.choices = 1000;
               load = {.queued = 1000, .availability = base::Availability::kServing};
             },
             DropReason::kNoReadyReplica, 503, "overloaded", "no_ready_replica", true,
             "no replica"},
        Case{"Starting",
             [](DeploymentAsk&, DeploymentLoad& load) {
               load = {.starting = 1, .ready_in = milliseconds(90'000)};
             },
             DropReason::kModelLoading, 503, "model_loading", "model_loading", true, "loading"},
        Case{"Loading",
             [](DeploymentAsk&, DeploymentLoad& load) {
               load = {.availability = base::Availability::kLoading};
             },
             DropReason::kModelLoading, 503, "model_loading", "model_loading", true, "loading"},
        Case{"MemoryPressure",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.choices = 1000;
               load = {.ready = 2, .under_pressure = 2, .queued = 1000};
             },
             DropReason::kMemoryPressure, 429, "overloaded", "memory_pressure", true,
             "kv_pressure"},
        Case{"Prompt",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.limits.max_prompt_tokens = 3600;
               ask.least_prompt = 3601;
               load = busy(1000, seconds(9));
             },
             DropReason::kTokenBudget, 400, "token_budget_exceeded", "token_budget_exceeded", false,
             "at least 3601 tokens, and max_prompt_tokens is 3600", "messages"},
        Case{"Completion",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.limits.max_completion_tokens = 100;
               ask.max_tokens = 101;
               load = busy(1000, seconds(9));
             },
             DropReason::kTokenBudget, 400, "token_budget_exceeded", "token_budget_exceeded", false,
             "101 tokens, and max_completion_tokens is 100", "max_tokens"},
        Case{"Choices",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.choices = 17;
               load = busy(1000, seconds(9));
             },
             DropReason::kTokenBudget, 400, "invalid_value", "token_budget_exceeded", false,
             "17 choices, and max_n is 16", "n"},
        Case{"QueueFull",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.limits.wait_budget = seconds(1);
               load = busy(100, seconds(9));
             },
             DropReason::kQueueFull, 429, "overloaded", "queue_full", true,
             "100 requests wait, and max_queued is 100"},
        Case{"OneWaits",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.limits.max_queued = 1;
               load = busy(1, seconds(9));
             },
             DropReason::kQueueFull, 429, "overloaded", "queue_full", true,
             "1 request waits, and max_queued is 1"},
        Case{"TooLong",
             [](DeploymentAsk& ask, DeploymentLoad& load) {
               ask.limits.wait_budget = milliseconds(2000);
               load = busy(99, milliseconds(2001));
             },
             DropReason::kWaitExceeded, 429, "overloaded", "wait_exceeded", true,
             "2001 ms, and wait_budget_ms is 2000"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Place, WhereNobodyMayWaitABusyDeploymentRefuses) {
  DeploymentAsk ask = plain();
  ask.limits.max_queued = 0;
  EXPECT_EQ(refused(ask, busy(0, seconds(1))).reason, DropReason::kQueueFull);
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(ask, with_room())));
}

TEST(Place, AWaitThatIsOnlyGuessedIsNoReasonToRefuse) {
  DeploymentAsk ask = plain();
  ask.limits.wait_budget = milliseconds(1000);
  auto load = busy(2, milliseconds(5000));
  EXPECT_FALSE(waits(ask, load));
  load.wait_is_guessed = true;
  EXPECT_TRUE(waits(ask, load));
}

TEST(Place, ABudgetIsHeldAgainstWhatNearlyAllWaitAtMost) {
  DeploymentAsk ask = plain();
  ask.limits.wait_budget = milliseconds(1000);
  auto load = busy(2, milliseconds(900));
  load.wait_within = milliseconds(1000);
  EXPECT_TRUE(waits(ask, load));
  load.wait_within = milliseconds(1001);
  EXPECT_EQ(refused(ask, load).detail,
            "it would wait 900 ms, or up to 1001, and wait_budget_ms is 1000");
  load.wait_within = milliseconds(0);
  load.estimated_wait = milliseconds(1001);
  EXPECT_EQ(refused(ask, load).detail, "it would wait 1001 ms, and wait_budget_ms is 1000");
}

TEST(Place, HighPriorityHasAFifthMoreOfQueueAndWaitRoundedUp) {
  DeploymentAsk ask = plain();
  ask.limits.max_queued = 3;
  ask.limits.wait_budget = milliseconds(999);
  EXPECT_FALSE(waits(ask, busy(3, milliseconds(999))));
  EXPECT_FALSE(waits(ask, busy(2, milliseconds(1000))));
  ask.priority = Priority::kHigh;
  EXPECT_TRUE(waits(ask, busy(3, milliseconds(1199))));
  EXPECT_FALSE(waits(ask, busy(4, milliseconds(1199))));
  EXPECT_FALSE(waits(ask, busy(3, milliseconds(1200))));
  ask.priority = Priority::kLow;
  EXPECT_FALSE(waits(ask, busy(3, milliseconds(1))));
}

TEST(Place, HighPriorityHasNoMoreTokens) {
  DeploymentAsk ask = plain();
  ask.priority = Priority::kHigh;
  ask.choices = 17;
  EXPECT_EQ(refused(ask, with_room()).reason, DropReason::kTokenBudget);
}

TEST(Place, ABudgetThatIsUsedUpSaysWhenItIsBackAndIsNotToBeTriedAgainByItself) {
  DeploymentLoad load{.queued = 1000, .availability = base::Availability::kScaledToZero};
  for (const auto& [left, told] : {std::pair(milliseconds(1500), milliseconds(2000)),
                                   std::pair(milliseconds(-5), milliseconds(1000)),
                                   std::pair(milliseconds(3'600'000), milliseconds(60'000))}) {
    load.budget_back_in = left;
    const Refusal refusal = refused(plain(), load);
    EXPECT_EQ(refusal.reason, DropReason::kBudget);
    const base::Error error = refusal_error("mini", refusal);
    EXPECT_EQ(error.status, 503U);
    EXPECT_EQ(error.code, "budget");
    EXPECT_EQ(error.drop_reason, "budget");
    EXPECT_FALSE(error.client_may_retry);
    EXPECT_EQ(error.retry_after, told);
  }
  load.budget_back_in = milliseconds(3'600'000);
  EXPECT_NE(refused(plain(), load).detail.find("in 3600 s"), std::string::npos);
}

TEST(Place, ABudgetThatIsOnlyReservedIsToBeTriedAgain) {
  const Refusal under_way = beyond_budget({DropReason::kRateLimited, seconds(1), "$1.0 a day"});
  EXPECT_EQ(under_way.reason, DropReason::kBudget);
  const base::Error soon = refusal_error("cloud", under_way);
  EXPECT_EQ(soon.drop_reason, "budget");
  EXPECT_TRUE(soon.client_may_retry);
  EXPECT_EQ(soon.retry_after, seconds(1));
  EXPECT_EQ(soon.message,
            "the budget of model `cloud` is reserved for others: $1.0 a day; try again");
  const base::Error tomorrow =
      refusal_error("cloud", beyond_budget({DropReason::kQuota, std::chrono::hours(3), "none"}));
  EXPECT_EQ(tomorrow.code, "budget");
  EXPECT_EQ(tomorrow.drop_reason, "budget");
  EXPECT_FALSE(tomorrow.client_may_retry);
  EXPECT_EQ(tomorrow.retry_after, seconds(60));
}

TEST(Place, APromptThatIsCutIsNeverTooLong) {
  DeploymentAsk ask = plain();
  ask.limits.max_prompt_tokens = 10;
  ask.least_prompt = 11;
  ask.trims = true;
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(ask, with_room())));
  ask.choices = 17;
  EXPECT_EQ(refused(ask, with_room()).param, "n");
}

TEST(TurnsAway, FromTheFirstOneOverTheBudgetToTheFirstBelowFourFifthsOfIt) {
  const milliseconds budget(1000);
  bool away = false;
  const auto comes = [&](int wait) { return away = turns_away(away, milliseconds(wait), budget); };
  EXPECT_FALSE(comes(900));
  EXPECT_FALSE(comes(1000));
  EXPECT_TRUE(comes(1001));
  EXPECT_TRUE(comes(1000));
  EXPECT_TRUE(comes(800));
  EXPECT_FALSE(comes(799));
  EXPECT_FALSE(comes(950));
  EXPECT_FALSE(turns_away(true, seconds(9), milliseconds(0))) << "without a budget nobody is";
}

TEST(TurnsAway, OnlyThoseThatAnotherDeploymentTakes) {
  DeploymentAsk ask = plain();
  ask.limits.wait_budget = milliseconds(1000);
  DeploymentLoad load = busy(1, milliseconds(900));
  load.turns_away = true;
  EXPECT_TRUE(waits(ask, load));
  ask.has_rung = true;
  EXPECT_EQ(refused(ask, load).reason, DropReason::kWaitExceeded);
  load.turns_away = false;
  EXPECT_TRUE(waits(ask, load));
  load = with_room();
  load.turns_away = true;
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(ask, load))) << "there is room";
}

TEST(Place, ZeroTokensAreNoLimit) {
  DeploymentAsk ask = plain();
  ask.least_prompt = 1'000'000;
  ask.max_tokens = 1'000'000;
  ask.choices = 1000;
  ask.limits.max_n = 0;
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(ask, with_room())));
}

TEST(Place, OneReplicaBelowItsPressureIsEnough) {
  DeploymentLoad load = with_room();
  load.under_pressure = 1;
  EXPECT_TRUE(std::holds_alternative<Admitted>(decide_place(plain(), load)));
}

TEST(Place, RetryAfterIsTheWaitOfANewcomerFromASecondToAMinute) {
  DeploymentAsk ask = plain();
  ask.limits.max_queued = 1;
  EXPECT_EQ(refused(ask, busy(1, milliseconds(10))).retry_after, seconds(1));
  EXPECT_EQ(refused(ask, busy(1, milliseconds(7250))).retry_after, milliseconds(7250));
  EXPECT_EQ(refused(ask, busy(1, seconds(300))).retry_after, seconds(60));
}

TEST(Refusal, ADeadlineThatIsOverIs408AndMayBeTriedAgain) {
  const base::Error error =
      refusal_error("mini", queue_deadline_over(milliseconds(30'000), seconds(12)));
  EXPECT_EQ(error.status, 408U);
  EXPECT_EQ(error.type, "timeout_error");
  EXPECT_EQ(error.code, "queue_deadline");
  EXPECT_EQ(error.drop_reason, "queue_deadline");
  EXPECT_TRUE(error.client_may_retry);
  EXPECT_EQ(error.retry_after, seconds(12));
  EXPECT_NE(error.message.find("30000 ms"), std::string::npos) << error.message;
}

TEST(Refusal, AQuotaIsNotToBeTriedAgainAndALimitIs) {
  const base::Error quota = refusal_error("mini", {.reason = DropReason::kQuota});
  EXPECT_EQ(quota.status, 429U);
  EXPECT_EQ(quota.code, "insufficient_quota");
  EXPECT_FALSE(quota.client_may_retry);
  const base::Error limit =
      refusal_error("mini", {.reason = DropReason::kRateLimited, .retry_after = seconds(3)});
  EXPECT_EQ(limit.status, 429U);
  EXPECT_EQ(limit.code, "rate_limit_exceeded");
  EXPECT_TRUE(limit.client_may_retry);
  EXPECT_EQ(limit.retry_after, seconds(3));
}

TEST(Refusal, AClientThatLeftIsNamedForLogsAndMetrics) {
  const base::Error error = refusal_error("mini", {.reason = DropReason::kClientGone});
  EXPECT_EQ(error.status, 499U);
  EXPECT_EQ(error.drop_reason, "client_gone");
}

TEST(DropReason, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    EXPECT_TRUE(names.insert(name(static_cast<DropReason>(i))).second) << i;
  }
}

}  // namespace
}  // namespace penstock::admission
