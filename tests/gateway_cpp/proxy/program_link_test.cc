// What a router program's process may say, and what becomes of it: it is not trusted.
#include "proxy/program_links.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "control_plane/temporary_directory.h"
#include "fake_program.h"
#include "fake_upstream.h"
#include "fixed_clock.h"
#include "log_capture.h"
#include "routing/snapshots.h"

namespace penstock::proxy {
namespace {

using admission::ProgramOutcome;
using std::chrono::milliseconds;

class ProgramLinkTest : public testing::Test {
 protected:
  ProgramLinkTest() { write("127.0.0.1:7"); }

  void write(const std::string& address) {
    std::ofstream(directory_.path() / "mini.json", std::ios::trunc)
        << R"({"address":")" << address << R"(","token":"t","digests":["d1","d2"],"pid":1})";
    auto deployment = routing::deployment("mini");
    deployment.program = routing::Program{.digest = "d1"};
    table_.replace({.version = 1, .deployments = {deployment}, .replicas = {}});
    programs_.look(*table_.current());
  }
  struct Question {
    explicit Question(ProgramLink& to)
        : question(to.next_id(), base::SteadyTime{}, milliseconds(20)) {
      v1::RouteAsk ask;
      ask.set_ask_id(question.id());
      to.ask(question, news, ask);
    }
    RoutingQuestion question;
    runtime::Signal news;
  };
  FakeProgram& program(size_t i = 0) { return *streams_.at(i); }

  test::FixedClock clock_;
  test::LogCapture log_;
  test::TemporaryDirectory directory_;
  routing::RouteTable table_;
  control_plane::ProgramDirectory programs_{directory_.path(), log_.log()};
  FakeUpstream upstream_;
  std::vector<std::shared_ptr<FakeProgram>> streams_;
  ProgramLinks links_{clock_, programs_, upstream_, [this](const auto& /*seat*/, auto& owner) {
                        return streams_.emplace_back(std::make_shared<FakeProgram>(owner));
                      }};
};

TEST_F(ProgramLinkTest, IsOneStreamForAllQuestionsOfADeployment) {
  const auto link = links_.to("mini", "d1");
  ASSERT_TRUE(link);
  EXPECT_EQ(links_.to("mini", "d2"), link);
  EXPECT_EQ(streams_.size(), 1U);
  Question one(*link);
  Question other(*link);
  ASSERT_TRUE(program().decide(other.question.id(), "r2"));
  EXPECT_TRUE(one.question.is_open());
  EXPECT_EQ(other.question.decision().replica_id(), "r2");
}

TEST_F(ProgramLinkTest, IsNoneWhereNobodyRunsTheProgram) {
  EXPECT_FALSE(links_.to("mini", "d9"));
  EXPECT_FALSE(links_.to("maxi", "d1"));
  EXPECT_TRUE(streams_.empty());
}

TEST_F(ProgramLinkTest, ItsEndIsTheEndOfAllThatIsAskedOnIt) {
  const auto link = links_.to("mini", "d1");
  Question one(*link);
  Question other(*link);
  program().die();
  for (const auto* each : {&one, &other}) {
    EXPECT_EQ(each->question.state(), Asked::kFailed);
    EXPECT_EQ(each->question.fault(), ProgramOutcome::kDead);
    EXPECT_EQ(each->question.detail(), "it was killed");
  }
  link->close(one.question);
  EXPECT_FALSE(links_.to("mini", "d1")) << "not at once";
  clock_.advance(milliseconds(150));
  EXPECT_TRUE(links_.to("mini", "d1"));
  EXPECT_EQ(streams_.size(), 2U);
}

TEST_F(ProgramLinkTest, KeepsWhatWasDecidedBeforeItsEnd) {
  const auto link = links_.to("mini", "d1");
  Question question(*link);
  ASSERT_TRUE(program().decide(question.question.id(), "r1"));
  program().die();
  EXPECT_EQ(question.question.state(), Asked::kDecided);
  link->close(question.question);
}

TEST_F(ProgramLinkTest, PassesOverWhatNobodyHasAskedOrNobodyWantsAnyMore) {
  const auto link = links_.to("mini", "d1");
  Question left(*link);
  link->close(left.question);
  EXPECT_EQ(program().told.cancels(0), left.question.id());
  EXPECT_TRUE(program().decide(left.question.id(), "r1"));
  EXPECT_TRUE(program().decide(77, "r1"));
  EXPECT_TRUE(left.question.is_open());
  v1::EngineCall call;
  call.set_ask_id(78);
  EXPECT_TRUE(program().call(call));
}

TEST_F(ProgramLinkTest, ListensToNobodyWhoTalksWithoutEnd) {
  const auto link = links_.to("mini", "d1");
  int words = 0;
  while (words < 100'000 && program().decide(77, "r1")) ++words;
  EXPECT_LT(words, 1'000);
  EXPECT_FALSE(program().say({})) << "an empty frame is a word, too";
}

TEST_F(ProgramLinkTest, AsksTheProcessThatHasComeInAnothersPlaceAndLetsThatOneFinish) {
  auto before = links_.to("mini", "d1");
  Question question(*before);
  write("127.0.0.1:8");
  const auto after = links_.to("mini", "d1");
  ASSERT_NE(before, after);
  EXPECT_EQ(after->seat().address, "127.0.0.1:8");
  ASSERT_TRUE(program(0).decide(question.question.id(), "r1"));
  EXPECT_EQ(question.question.state(), Asked::kDecided);
  before->close(question.question);
  before.reset();
  EXPECT_FALSE(program(0).decide(1, "r1")) << "nobody listens any more";
}

TEST_F(ProgramLinkTest, LetsGoOfAProcessThatHasLeft) {
  ASSERT_TRUE(links_.to("mini", "d1"));
  table_.replace({.version = 2, .deployments = {}, .replicas = {}});
  programs_.look(*table_.current());
  links_.tick();
  EXPECT_FALSE(program().say({}));
}

// Whatever a process says in whatever order: a question has one answer, and nothing breaks.
TEST_F(ProgramLinkTest, SurvivesAnyOrderOfWords) {
  std::mt19937 random(7);
  const auto any = [&random](uint64_t below) { return random() % below; };
  for (int round = 0; round < 200; ++round) {
    const auto link = links_.to("mini", "d1");
    if (!link) {
      clock_.advance(std::chrono::seconds(2));
      continue;
    }
    std::vector<std::unique_ptr<Question>> questions;
    std::map<uint64_t, std::string> answers;
    for (int step = 0; step < 60; ++step) {
      if (questions.size() < 5) questions.push_back(std::make_unique<Question>(*link));
      v1::ProgramFrame frame;
      for (uint64_t i = any(4); i > 0; --i) frame.add_calls()->set_ask_id(any(400));
      for (uint64_t i = any(3); i > 0; --i) {
        frame.add_decisions()->set_ask_id(any(400));
        frame.mutable_decisions(0)->set_replica_id(std::to_string(any(3)));
      }
      if (!streams_.back()->say(frame)) break;
      for (const auto& one : questions) {
        if (one->question.state() != Asked::kDecided) continue;
        const auto& replica = one->question.decision().replica_id();
        EXPECT_EQ(answers.emplace(one->question.id(), replica).first->second, replica);
      }
      if (any(4) == 0) {
        link->close(questions.front()->question);
        questions.erase(questions.begin());
      }
    }
    if (any(3) == 0) streams_.back()->die();
    for (const auto& one : questions) link->close(one->question);
  }
}

TEST_F(ProgramLinkTest, KeepsLastWordsUntilTheyAreHeard) {
  links_.tell({.replica_id = "r1", .address = "r1:1"},
              {.path = "/penstock.v1.MicroServing/Release"});
  links_.tick();
  ASSERT_EQ(upstream_.calls.size(), 1U);
  EXPECT_FALSE(upstream_.calls[0]->cancelled);
  upstream_.calls[0]->finish();
  links_.tick();
  EXPECT_FALSE(upstream_.calls[0]->cancelled);
  links_.tell({.replica_id = "r1", .address = "r1:1"},
              {.path = "/penstock.v1.MicroServing/Release"});
  clock_.advance(std::chrono::seconds(6));
  links_.tick();
  EXPECT_TRUE(upstream_.calls[1]->cancelled) << "a replica that hangs is not waited for";
}

}  // namespace
}  // namespace penstock::proxy
