#include "control_plane/deep_health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "fake_service.h"
#include "fixed_clock.h"
#include "penstock/v1/inference.grpc.pb.h"

namespace penstock::control_plane {
namespace {

using Verdict = DeepAnswer::Verdict;

// A replica that answers as the test says.
class FakeReplica final : public test::FakeService<v1::Inference::Service> {
 public:
  FakeReplica() { start(); }
  ~FakeReplica() override {
    release();
    kill();
  }

  void says(bool ok, v1::ReplicaState state, const std::string& detail = {}) {
    const std::lock_guard lock(mutex_);
    reply_.set_ok(ok);
    reply_.set_state(state);
    reply_.set_detail(detail);
    reply_.set_latency_us(7'000);
  }
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  // Read them inside wait_for.
  std::vector<v1::HealthRequest> asked;
  std::string authorization;

 private:
  grpc::Status Health(grpc::ServerContext* context, const v1::HealthRequest* request,
                      v1::HealthReply* reply) override {
    std::unique_lock lock(mutex_);
    asked.push_back(*request);
    authorization = authorization_of(*context);
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    *reply = reply_;
    return grpc::Status::OK;
  }

  v1::HealthReply reply_;
  bool held_ = false;
};

std::string token_for(const std::string& cluster_token, const DeepTarget& replica) {
  return cluster_token + " of " + replica.replica_id;
}

class DeepHealthTest : public testing::Test {
 protected:
  DeepTarget target() const { return {"r1", replica_.address()}; }
  DeepAnswer look(const DeepTarget& at) { return health_.look({at}).at(0); }
  // Once it has answered.
  DeepAnswer answer_of(const DeepTarget& at) {
    auto answer = look(at);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (answer.verdict == Verdict::kUnknown && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      answer = look(at);
    }
    return answer;
  }

  test::FixedClock clock_;
  FakeReplica replica_;
  DeepHealth health_{clock_, "secret", token_for};
};

TEST_F(DeepHealthTest, KnowsNothingAtFirstAndAsksBehindAllCalls) {
  replica_.says(true, v1::REPLICA_STATE_READY);
  EXPECT_EQ(look(target()).verdict, Verdict::kUnknown);
  const auto answer = answer_of(target());
  EXPECT_EQ(answer.verdict, Verdict::kWell);
  EXPECT_EQ(answer.took, std::chrono::milliseconds(7));
  EXPECT_EQ(answer.at, clock_.steady_now());
  ASSERT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 1; }));
  EXPECT_EQ(replica_.asked[0].depth(), v1::HEALTH_DEPTH_DEEP);
  EXPECT_TRUE(replica_.asked[0].behind());
  EXPECT_EQ(replica_.authorization, "Bearer secret of r1");
}

TEST_F(DeepHealthTest, AsksAtMostEveryTenSecondsWhoeverLooks) {
  replica_.says(true, v1::REPLICA_STATE_READY);
  answer_of(target());
  clock_.advance(std::chrono::milliseconds(9'999));
  for (int i = 0; i < 10; ++i) look(target());
  replica_.says(false, v1::REPLICA_STATE_READY, "no tokens");
  EXPECT_EQ(look(target()).verdict, Verdict::kWell);
  clock_.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(look(target()).verdict, Verdict::kWell);  // what it said last, until it answers
  ASSERT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 2; }));
  while (look(target()).verdict == Verdict::kWell) std::this_thread::yield();
  EXPECT_EQ(look(target()).detail, "no tokens");
}

TEST_F(DeepHealthTest, AsksNobodyTwiceAtATime) {
  replica_.hold();
  look(target());
  ASSERT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 1; }));
  clock_.advance(std::chrono::seconds(30));
  for (int i = 0; i < 10; ++i) look(target());
  replica_.says(true, v1::REPLICA_STATE_READY);
  replica_.release();
  EXPECT_EQ(answer_of(target()).verdict, Verdict::kWell);
  EXPECT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 1; }));
}

TEST_F(DeepHealthTest, AnswersOfLongAgoCountForNothing) {
  replica_.says(false, v1::REPLICA_STATE_READY, "no tokens");
  EXPECT_EQ(answer_of(target()).verdict, Verdict::kUnwell);
  clock_.advance(std::chrono::minutes(10));
  replica_.hold();
  EXPECT_EQ(look(target()).verdict, Verdict::kUnknown);
}

TEST_F(DeepHealthTest, WhoLooksEveryFiveMinutesHearsWhatWasAnsweredTheTimeBefore) {
  replica_.says(false, v1::REPLICA_STATE_READY, "no tokens");
  EXPECT_EQ(answer_of(target()).verdict, Verdict::kUnwell);
  clock_.advance(std::chrono::minutes(5));
  EXPECT_EQ(look(target()).verdict, Verdict::kUnwell);
}

TEST_F(DeepHealthTest, OneThatCannotBeReachedIsUnwellAndItsAddressIsNotTold) {
  const auto answer = answer_of({"r2", "127.0.0.1:1"});
  EXPECT_EQ(answer.verdict, Verdict::kUnwell);
  EXPECT_EQ(answer.detail, "no answer: it cannot be reached");
}

TEST_F(DeepHealthTest, OneThatDrainsIsNeither) {
  replica_.says(false, v1::REPLICA_STATE_DRAINING, "it drains");
  look(target());
  ASSERT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 1; }));
  while (look(target()).detail.empty()) std::this_thread::yield();
  EXPECT_EQ(look(target()).verdict, Verdict::kUnknown);
}

TEST_F(DeepHealthTest, OfManyAllHaveTheirTurnAndFewAtATime) {
  replica_.says(true, v1::REPLICA_STATE_READY);
  std::vector<DeepTarget> many;
  for (int i = 0; i < 200; ++i) many.push_back({"r" + std::to_string(i), replica_.address()});
  const auto all_known = [&] {
    const auto answers = health_.look(many);
    return std::ranges::all_of(
        answers, [](const DeepAnswer& answer) { return answer.verdict == Verdict::kWell; });
  };
  while (!all_known()) std::this_thread::yield();
  EXPECT_TRUE(replica_.wait_for([&] { return replica_.asked.size() == many.size(); }));
}

TEST_F(DeepHealthTest, EndsWhileItIsAsking) {
  replica_.hold();
  DeepHealth other(clock_, "", token_for);
  other.look({target()});
  ASSERT_TRUE(replica_.wait_for([this] { return replica_.asked.size() == 1; }));
}

TEST_F(DeepHealthTest, EndsWithWhatItIsAboutToAsk) {
  DeepHealth other(clock_, "", token_for);
  other.look({target()});
}

}  // namespace
}  // namespace penstock::control_plane
