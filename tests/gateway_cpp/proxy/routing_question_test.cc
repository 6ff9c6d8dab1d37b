#include "proxy/routing_question.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::proxy {
namespace {

using admission::ProgramOutcome;
using std::chrono::milliseconds;

constexpr base::SteadyTime kAskedAt{std::chrono::hours(1)};

v1::EngineCall call_of(uint64_t id, const std::string& seq_id = "a") {
  v1::EngineCall call;
  call.set_call_id(id);
  call.set_seq_id(seq_id);
  return call;
}

v1::RouteDecision decision_for(const std::string& replica) {
  v1::RouteDecision decision;
  decision.set_replica_id(replica);
  return decision;
}

TEST(RoutingQuestion, HasOneAnswer) {
  RoutingQuestion question(1, kAskedAt, milliseconds(20));
  question.take(decision_for("r1"));
  question.take(decision_for("r2"));
  EXPECT_EQ(question.state(), Asked::kDecided);
  EXPECT_EQ(question.decision().replica_id(), "r1");
  question.fail(ProgramOutcome::kNonsense, "nobody can follow it");
  question.take(decision_for("r2"));
  EXPECT_EQ(question.state(), Asked::kFailed);
  EXPECT_EQ(question.detail(), "nobody can follow it");
}

TEST(RoutingQuestion, TellsWhyThereIsNone) {
  for (const auto& [error, fault] : {std::pair{"raised", ProgramOutcome::kRaised},
                                     std::pair{"unknown_program", ProgramOutcome::kUnknownProgram},
                                     std::pair{"whatever", ProgramOutcome::kNonsense}}) {
    RoutingQuestion question(1, kAskedAt, milliseconds(20));
    v1::RouteDecision decision;
    decision.set_error(error);
    decision.set_detail("line 3");
    question.take(decision);
    EXPECT_EQ(question.state(), Asked::kFailed);
    EXPECT_EQ(question.fault(), fault);
    EXPECT_EQ(question.detail(), "line 3");
  }
}

TEST(RoutingQuestion, HandsEngineCallsOnInTheirOrderUntilItIsAnswered) {
  RoutingQuestion question(1, kAskedAt, milliseconds(20));
  question.take(call_of(1));
  question.take(call_of(2));
  EXPECT_EQ(question.next_call()->call_id(), 1U);
  question.take(decision_for("r1"));
  EXPECT_FALSE(question.next_call());
  question.take(call_of(3));
  EXPECT_FALSE(question.next_call());
}

TEST(RoutingQuestion, DoesNotBelieveAProgramThatWantsTooMuch) {
  RoutingQuestion at_once(1, kAskedAt, milliseconds(20));
  for (uint64_t i = 0; i <= RoutingQuestion::kMostWaiting; ++i) at_once.take(call_of(i));
  EXPECT_EQ(at_once.state(), Asked::kFailed);
  RoutingQuestion in_turns(1, kAskedAt, milliseconds(20));
  for (uint64_t i = 0; i < RoutingQuestion::kMostCalls; ++i) {
    in_turns.take(call_of(i));
    in_turns.next_call();
  }
  EXPECT_TRUE(in_turns.is_open());
  in_turns.take(call_of(99));
  EXPECT_EQ(in_turns.state(), Asked::kFailed);
  for (const std::string& seq_id : {std::string(65, 'a'), std::string("a\nb")}) {
    RoutingQuestion named(1, kAskedAt, milliseconds(20));
    named.take(call_of(1, seq_id));
    EXPECT_EQ(named.fault(), ProgramOutcome::kNonsense);
    EXPECT_EQ(named.state(), Asked::kFailed);
  }
}

TEST(RoutingQuestion, CountsTheProgramsOwnTimeAlone) {
  RoutingQuestion question(1, kAskedAt, milliseconds(20));
  EXPECT_EQ(question.due(), kAskedAt + milliseconds(20));
  question.engines_work(true, kAskedAt + milliseconds(15));
  EXPECT_FALSE(question.due());
  question.engines_work(true, kAskedAt + milliseconds(500));
  question.engines_work(false, kAskedAt + milliseconds(1'000));
  EXPECT_EQ(question.due(), kAskedAt + milliseconds(1'005));
}

}  // namespace
}  // namespace penstock::proxy
