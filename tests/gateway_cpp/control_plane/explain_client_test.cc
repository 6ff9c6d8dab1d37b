#include "control_plane/explain_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "fake_head.h"

namespace penstock::control_plane {
namespace {

class ExplainClientTest : public testing::Test {
 protected:
  void end(const std::string& id, std::uint64_t at_us, const std::string& deployment = "mini") {
    v1::RequestRecord record;
    record.set_request_id(id);
    record.set_received_us(at_us);
    record.add_stays()->set_deployment(deployment);
    records_.take({.tenant = "acme", .received_us = at_us}, record.SerializeAsString());
  }
  void ask(std::uint64_t number, const std::function<void(v1::ExplainQuestion&)>& what) {
    v1::ExplainQuestion question;
    question.set_number(number);
    what(question);
    head_.ask(question);
  }
  // All that came for the question; waits until it is answered.
  std::vector<v1::ExplainReply> answered(std::uint64_t number) {
    std::vector<v1::ExplainReply> replies;
    EXPECT_TRUE(head_.wait_for([&] {
      replies.clear();
      for (const auto& reply : head_.explained) {
        if (reply.question() == number) replies.push_back(reply);
      }
      return !replies.empty() && replies.back().last();
    }));
    return replies;
  }
  // The ids that a tail has told.
  std::vector<std::string> told(std::uint64_t number) {
    std::vector<std::string> ids;
    for (const auto& reply : head_.explained) {
      if (reply.question() != number) continue;
      for (const auto& record : reply.records()) ids.push_back(record.request_id());
    }
    return ids;
  }
  bool said_hello(std::size_t times = 1) {
    return head_.wait_for([&] {
      return std::ranges::count(head_.explained, "gw-1", &v1::ExplainReply::gateway_id) ==
             static_cast<std::ptrdiff_t>(times);
    });
  }

  FakeHead head_;
  observe::RecordStore records_{1UL << 20U, base::WallTime(std::chrono::microseconds(5))};
  ExplainClient client_{"gw-1", "instance", connect_to_head(head_.address()), records_};
};

TEST_F(ExplainClientTest, SaysWhoItIsAndAnswersWhatItIsAsked) {
  end("req_1", 5);
  end("req_2", 6, "next");
  client_.start();
  ASSERT_TRUE(said_hello());
  ask(1, [](auto& question) { question.mutable_list(); });
  ask(2, [](auto& question) { question.mutable_list()->set_deployment("next"); });
  ask(3, [](auto& question) { question.set_id("req_1"); });
  ask(4, [](auto& question) { question.set_id("nobody"); });
  auto replies = answered(1);
  EXPECT_EQ(replies.at(0).records(0).request_id(), "req_2");
  EXPECT_EQ(replies.at(0).records(1).request_id(), "req_1");
  EXPECT_EQ(replies.at(0).kept_since_us(), 5U);
  EXPECT_TRUE(replies.at(0).gateway_id().empty()) << "the first message alone says it";
  EXPECT_EQ(answered(2).at(0).records_size(), 1);
  EXPECT_EQ(answered(3).at(0).records(0).request_id(), "req_1");
  EXPECT_EQ(answered(4).at(0).records_size(), 0);
}

TEST_F(ExplainClientTest, AnswersInPartsAndSaysWhichIsTheLast) {
  for (std::uint64_t i = 1; i <= 250; ++i) end("req_" + std::to_string(i), i);
  client_.start();
  ask(1, [](auto& question) { question.mutable_list()->set_limit(250); });
  const auto replies = answered(1);
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[0].records_size(), 100);
  EXPECT_FALSE(replies[0].last());
  EXPECT_EQ(replies[2].records(49).request_id(), "req_1");
}

TEST_F(ExplainClientTest, FollowsWhatEndsUntilItIsToForget) {
  client_.start();
  end("before", 1);
  ask(1, [](auto& question) { question.mutable_tail()->set_deployment("mini"); });
  ask(2, [](auto& question) { question.mutable_list(); });
  answered(2);  // the tail is there by now
  end("req_1", 2);
  end("elsewhere", 3, "next");
  end("req_2", 4);
  EXPECT_TRUE(head_.wait_for([&] {
    return told(1) == std::vector<std::string>{"req_1", "req_2"};
  }));
  ask(3, [](auto& question) { question.set_forget(1); });
  ask(4, [](auto& question) { question.mutable_list(); });
  answered(4);
  end("after", 5);
  ask(5, [](auto& question) { question.mutable_list(); });
  answered(5);
  EXPECT_TRUE(head_.wait_for([&] { return told(1).size() == 2; }));
}

TEST_F(ExplainClientTest, TellsATailWhatEndsWithinATenthOfASecondTogether) {
  client_.start();
  ask(1, [](auto& question) { question.mutable_tail(); });
  ask(2, [](auto& question) { question.mutable_list(); });
  answered(2);  // the tail is there by now
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::string> ended;
  for (std::uint64_t i = 1; i <= 60; ++i) {
    ended.push_back("req_" + std::to_string(i));
    end(ended.back(), i);
    if (i % 20 != 0) continue;
    EXPECT_TRUE(head_.wait_for([&] { return told(1) == ended; }));
  }
  const auto took = std::chrono::steady_clock::now() - began;
  const auto messages =
      std::ranges::count(head_.explained, std::uint64_t{1}, &v1::ExplainReply::question);
  EXPECT_GE(messages, 3);
  EXPECT_GE(took, (messages - 1) * std::chrono::milliseconds(100));
}

TEST_F(ExplainClientTest, ComesBackToAHeadThatWasAway) {
  end("req_1", 5);
  client_.start();
  ASSERT_TRUE(said_hello());
  ask(1, [](auto& question) { question.mutable_tail(); });
  ask(2, [](auto& question) { question.set_id("req_1"); });
  answered(2);
  head_.kill();
  head_.start_again();
  ASSERT_TRUE(said_hello(2));
  end("req_2", 6);
  ask(1, [](auto& question) { question.set_id("req_2"); });
  EXPECT_EQ(answered(1).back().records(0).request_id(), "req_2")
      << "the tail has ended with its stream";
}

// One that takes no answers and dies, while more questions wait than are kept.
TEST_F(ExplainClientTest, ComesBackToAHeadThatDiedAndHadAskedMoreThanItIsAnswered) {
  const std::string large(4096, 'x');
  for (std::uint64_t i = 1; i <= 50; ++i) end("req_" + std::to_string(i), i, large);
  head_.hears = false;
  for (std::uint64_t i = 1; i <= 4 * ExplainClient::kMostQuestions; ++i) {
    ask(i, [](auto& question) { question.mutable_list(); });
  }
  client_.start();
  ASSERT_TRUE(said_hello());
  head_.kill();
  head_.hears = true;
  head_.start_again();
  ASSERT_TRUE(said_hello(2));
  constexpr std::uint64_t kFresh = 1000;  // the one before may have been answered in part
  ask(kFresh, [](auto& question) { question.set_id("req_1"); });
  EXPECT_EQ(answered(kFresh).back().records(0).request_id(), "req_1");
}

TEST_F(ExplainClientTest, LooksForNothingThatNobodyWaitsForAnyMore) {
  ExplainClient late("gw-1", "instance", connect_to_head(head_.address()), records_,
                     std::chrono::milliseconds(0));
  end("req_1", 5);
  late.start();
  ask(1, [](auto& question) { question.mutable_tail(); });
  ask(2, [](auto& question) { question.mutable_list(); });
  ask(3, [](auto& question) { question.set_id("req_1"); });
  EXPECT_EQ(answered(2).at(0).records_size(), 0);
  EXPECT_EQ(answered(3).at(0).records_size(), 0);
  end("req_2", 6);
  EXPECT_TRUE(head_.wait_for([&] { return told(1) == std::vector<std::string>{"req_2"}; }))
      << "whoever follows is there until he goes";
}

TEST_F(ExplainClientTest, EndsATailAtOnceWhereNothingIsKept) {
  observe::RecordStore none(0);
  ExplainClient client("gw-1", "instance", connect_to_head(head_.address()), none);
  client.start();
  ask(1, [](auto& question) { question.mutable_tail(); });
  EXPECT_EQ(answered(1).at(0).records_size(), 0);
}

TEST_F(ExplainClientTest, AnswersWhatItDoesNotKnowWithNothing) {
  client_.start();
  ask(1, [](auto& /*question*/) {});
  EXPECT_EQ(answered(1).at(0).records_size(), 0);
}

TEST_F(ExplainClientTest, StopsBesideAHeadThatKnowsNoSuchStream) {
  head_.knows_explain = false;
  client_.start();
  client_.stop();
  EXPECT_TRUE(head_.explained.empty());
}

}  // namespace
}  // namespace penstock::control_plane
