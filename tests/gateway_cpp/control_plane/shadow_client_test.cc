#include "control_plane/shadow_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_comparer.h"

namespace penstock::control_plane {
namespace {

using admission::ShadowOutcome;

class ShadowClientTest : public testing::Test {
 protected:
  void offer(const std::string& id, size_t bytes = 10) {
    v1::ShadowPair pair;
    pair.set_rule("u1");
    pair.set_request_id(id);
    client_.offer(std::move(pair), std::make_shared<std::string>(bytes, 'x'));
  }
  std::uint64_t count(ShadowOutcome outcome) {
    const auto rows = book_.rows();
    return rows.empty() ? 0 : rows[0].counts[static_cast<size_t>(outcome)];
  }
  bool comes_to(ShadowOutcome outcome, std::uint64_t wanted) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (count(outcome) != wanted) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  static v1::ShadowReply reply_to(const std::string& id) {
    v1::ShadowReply reply;
    reply.set_id(id);
    reply.mutable_answer()->set_body("FIRST");
    return reply;
  }

  admission::ShadowBook book_;
  bool answers_ = true;
  std::vector<std::string> asked_;  // read it once a reply has come, or the client has stopped
  ShadowClient client_{
      {"gw-1", "instance"},
      [](const std::string& address) { return connect_to_head(address, "secret"); },
      book_,
      [this](v1::ShadowQuestion question) {
        asked_.push_back(question.id());
        if (answers_ && question.id() != "slow") client_.reply(reply_to(question.id()));
      }};
};

TEST_F(ShadowClientTest, HandsPairsOverAndCountsThoseThatWereCounted) {
  FakeComparer comparer;
  client_.start();
  client_.point_at(comparer.address());
  EXPECT_TRUE(client_.is_there());
  offer("req_1");
  ASSERT_TRUE(comes_to(ShadowOutcome::kPaired, 1));
  client_.stop();
  const v1::ShadowBatch& batch = comparer.batches.at(0);
  EXPECT_EQ(batch.gateway_id(), "gw-1");
  EXPECT_EQ(batch.instance(), "instance");
  EXPECT_EQ(batch.number(), 1U);
  ASSERT_EQ(batch.pairs_size(), 1);
  EXPECT_EQ(batch.pairs(0).request_id(), "req_1");
  EXPECT_EQ(batch.pairs(0).body(), std::string(10, 'x'));
  EXPECT_EQ(comparer.authorization, "Bearer secret");
}

TEST_F(ShadowClientTest, DropsPairsWhereNobodyCompares) {
  client_.start();
  EXPECT_FALSE(client_.is_there());
  offer("req_1");
  EXPECT_EQ(count(ShadowOutcome::kNoComparer), 1U);
}

TEST_F(ShadowClientTest, SendsAgainWhatWasNotCounted) {
  FakeComparer comparer(false);
  client_.start();
  client_.point_at(comparer.address());
  offer("req_1");
  ASSERT_TRUE(comparer.wait_for([&] { return comparer.pairs() == 1; }));
  comparer.kill();
  offer("req_2");
  comparer.start_again();
  ASSERT_TRUE(comes_to(ShadowOutcome::kPaired, 2));
  client_.stop();
  ASSERT_GE(comparer.pairs(), 3U);
  EXPECT_EQ(comparer.batches.at(1).number(), comparer.batches.at(0).number());
  EXPECT_EQ(comparer.batches.at(1).pairs(0).request_id(), "req_1");
}

TEST_F(ShadowClientTest, DropsWhatIsTooMuchForAComparerThatIsAway) {
  client_.start();
  client_.point_at("127.0.0.1:1");
  for (size_t i = 0; i < ShadowClient::kMostPairs + 3; ++i) offer("req");
  EXPECT_EQ(count(ShadowOutcome::kOverload), 3U);
  client_.point_at("");
  EXPECT_TRUE(comes_to(ShadowOutcome::kNoComparer, ShadowClient::kMostPairs));
}

TEST_F(ShadowClientTest, DropsWhatHasTooManyBytes) {
  client_.start();
  client_.point_at("127.0.0.1:1");
  offer("req_1", ShadowClient::kMostBytes);  // with what else there is to it
  EXPECT_EQ(count(ShadowOutcome::kOverload), 1U);
  EXPECT_TRUE(client_.has_room());
  offer("req_2", ShadowClient::kMostBytes / 2);
  offer("req_3", ShadowClient::kMostBytes / 2);
  EXPECT_EQ(count(ShadowOutcome::kOverload), 2U);
}

TEST_F(ShadowClientTest, SaysThatItHasNoRoomUntilPairsHaveGone) {
  FakeComparer comparer;
  comparer.kill();
  client_.start();
  client_.point_at(comparer.address());
  EXPECT_TRUE(client_.has_room());
  for (size_t i = 0; i <= ShadowClient::kMostPairs; ++i) offer("req");
  EXPECT_FALSE(client_.has_room());
  comparer.start_again();
  ASSERT_TRUE(comes_to(ShadowOutcome::kPaired, ShadowClient::kMostPairs));
  EXPECT_TRUE(client_.has_room());
}

TEST_F(ShadowClientTest, DropsABatchThatIsRefusedTimeAndAgain) {
  FakeComparer comparer;
  comparer.refuses = "req_1";
  client_.start();
  client_.point_at(comparer.address());
  offer("req_1");
  ASSERT_TRUE(comes_to(ShadowOutcome::kNoComparer, 1));
  offer("req_2");
  ASSERT_TRUE(comes_to(ShadowOutcome::kPaired, 1));
  client_.stop();
  EXPECT_EQ(comparer.pairs(), 1U);
}

TEST_F(ShadowClientTest, HasQuestionsAskedAndReplies) {
  FakeComparer comparer;
  comparer.questions = {"q1", "q2"};
  client_.start();
  client_.point_at(comparer.address());
  offer("req_1");
  ASSERT_TRUE(comparer.wait_for([&] { return comparer.replies().size() == 2; }));
  client_.stop();
  EXPECT_EQ(asked_, (std::vector<std::string>{"q1", "q2"}));
  EXPECT_EQ(comparer.replies().at("q2").answer().body(), "FIRST");
  EXPECT_EQ(comparer.replies().at("q2").outcome(), "");
  EXPECT_EQ(count(ShadowOutcome::kPaired), 1U);
}

TEST_F(ShadowClientTest, RepliesToNoQuestionOfAStreamThatHasEnded) {
  FakeComparer comparer;
  comparer.questions = {"slow", "q1"};
  client_.start();
  client_.point_at(comparer.address());
  offer("req_1");
  ASSERT_TRUE(comparer.wait_for([&] { return comparer.replies().contains("q1"); }));
  comparer.kill();
  comparer.questions = {"q2"};
  comparer.start_again();
  offer("req_2");
  ASSERT_TRUE(comparer.wait_for([&] { return comparer.replies().contains("q2"); }));
  client_.reply(reply_to("slow"));
  offer("req_3");
  ASSERT_TRUE(comes_to(ShadowOutcome::kPaired, 3));
  client_.stop();
  EXPECT_FALSE(comparer.replies().contains("slow"));
}

TEST_F(ShadowClientTest, TakesNoMoreQuestionsThanItMay) {
  FakeComparer comparer;
  for (size_t i = 0; i < ShadowClient::kMostQuestions; ++i) {
    comparer.questions.push_back("slow" + std::to_string(i));
  }
  comparer.questions.push_back("q1");
  answers_ = false;
  client_.start();
  client_.point_at(comparer.address());
  offer("req_1");
  ASSERT_TRUE(comparer.wait_for([&] { return comparer.replies().contains("q1"); }));
  client_.stop();
  EXPECT_EQ(comparer.replies().at("q1").outcome(), "overload");
  EXPECT_EQ(asked_.size(), ShadowClient::kMostQuestions);
}

TEST(FindComparer, PutsTheHeadsHostBeforeAPortAlone) {
  EXPECT_EQ(find_comparer("10.0.0.2:9000", "10.0.0.1:8082"), "10.0.0.2:9000");
  EXPECT_EQ(find_comparer(":9000", "10.0.0.1:8082"), "10.0.0.1:9000");
  EXPECT_EQ(find_comparer(":9000", "[::1]:8082"), "[::1]:9000");
  EXPECT_EQ(find_comparer(":9000", ""), "");
  EXPECT_EQ(find_comparer("", "10.0.0.1:8082"), "");
}

TEST_F(ShadowClientTest, CountsTheBytesOfAllAnswers) {
  client_.start();
  client_.point_at("127.0.0.1:1");
  const std::string third(ShadowClient::kMostBytes / 3 - 1024, 'x');
  v1::ShadowPair pair;
  pair.set_rule("u1");
  pair.mutable_primary()->set_body(third);
  pair.mutable_candidate()->set_body(third);
  pair.mutable_again()->set_body(third);
  client_.offer(std::move(pair), std::make_shared<std::string>());
  offer("req_2", 4096);
  EXPECT_EQ(count(ShadowOutcome::kOverload), 1U);
}

TEST_F(ShadowClientTest, TellsItsCountsOnEachStream) {
  FakeComparer comparer;
  book_.count("u1", "next", ShadowOutcome::kPreempted);
  client_.start();
  client_.point_at(comparer.address());
  const auto has_told = [&](size_t times) {
    size_t told = 0;
    for (const auto& batch : comparer.batches) {
      for (const auto& each : batch.counts()) {
        told += each.rule() == "u1" && each.outcome() == "preempted" && each.count() == 1 ? 1U : 0U;
      }
    }
    return told == times;
  };
  ASSERT_TRUE(comparer.wait_for([&] { return has_told(1); }));
  comparer.kill();
  comparer.start_again();
  ASSERT_TRUE(comparer.wait_for([&] { return has_told(2); }));
}

}  // namespace
}  // namespace penstock::control_plane
