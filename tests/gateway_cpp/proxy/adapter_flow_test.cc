// A request to an adapter on its way: the version that it stays with, and replicas that fail it.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

const std::string kPirate = R"({"model":"mini:pirate","messages":[{}]})";

class AdapterFlowTest : public RequestFlowTest {
 protected:
  AdapterFlowTest() { alias_names("pirate@1"); }

  void alias_names(const std::string& adapter,
                   const std::vector<std::string>& replicas = {"r1", "r2"}) {
    auto deployment = routing::deployment("mini", {{"pirate", adapter}}, limits_);
    deployment.base_family = family_;
    deployment.uid = uid_;
    deployment.selection_policy = "round_robin";
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {deployment}, .replicas = {}};
    for (const auto& id : replicas) {
      snapshot.replicas.push_back(routing::replica(id, "mini"));
      snapshot.replicas.back().deployment_uid = uid_;
    }
    snapshot.adapters = {{adapter, "digest of " + adapter, family_, 0}};
    routes_.replace(snapshot);
  }
  void expect_sent(size_t i, const std::string& adapter) {
    EXPECT_EQ(call(i).request.adapter(), adapter);
    EXPECT_EQ(call(i).request.adapter_digest(), "digest of " + adapter);
  }
  void answer(size_t i) {
    call(i).content_type = "application/json";
    call(i).chunk("{}");
    call(i).finish();
  }
  // It comes to what its name stands for by now, as if it had come after that.
  void expect_newcomer_after_loss() {
    call().lose(Source::kUnreachable);
    ASSERT_EQ(upstream_.calls.size(), 2U);
    expect_sent(1, "pirate@1");
    answer(1);
    EXPECT_EQ(reply_.status, 200U);
  }
  void expect_gone_after_loss() {
    call().lose(Source::kUnreachable);
    EXPECT_TRUE(done_);
    EXPECT_EQ(upstream_.calls.size(), 1U);
    EXPECT_EQ(reply_.status, 404U);
    EXPECT_NE(reply_.text.find("was just deleted"), std::string::npos) << reply_.text;
  }

  std::string family_ = "mini-family";
  std::string uid_;
};

TEST_F(AdapterFlowTest, TellsTheReplicaTheDigest) {
  ask(kPirate);
  expect_sent(0, "pirate@1");
  done_ = false;
  ask(kUnary);
  EXPECT_EQ(call(1).request.adapter(), "");
  EXPECT_EQ(call(1).request.adapter_digest(), "");
}

TEST_F(AdapterFlowTest, StaysWithItsVersionWhenItIsTriedAgain) {
  ask(kPirate);
  alias_names("pirate@2");  // and pirate@1 is listed no more
  call(0).lose(Source::kUnreachable);
  ASSERT_EQ(upstream_.calls.size(), 2U);
  expect_sent(1, "pirate@1");
  answer(1);
  EXPECT_EQ(reply_.status, 200U);
  EXPECT_EQ(reply_.header("x-penstock-adapter-version"), "pirate@1");
  done_ = false;
  ask(kPirate);
  expect_sent(2, "pirate@2");
}

TEST_F(AdapterFlowTest, EndsWhereItsDeploymentHasGone) {
  ask(kPirate);
  routes_.replace({.version = 2, .deployments = {routing::deployment("other")}, .replicas = {}});
  expect_gone_after_loss();
}

TEST_F(AdapterFlowTest, IsANewcomerWhereAnotherDeploymentHasItsName) {
  uid_ = "first";
  alias_names("pirate@1");
  ask(kPirate);
  uid_ = "second";
  alias_names("pirate@1");
  expect_newcomer_after_loss();
}

TEST_F(AdapterFlowTest, IsANewcomerWhereItsDeploymentHasWeightsOfAnotherFamily) {
  ask(kPirate);
  family_ = "other-family";
  alias_names("pirate@1");
  expect_newcomer_after_loss();
}

TEST_F(AdapterFlowTest, BlamesNoReplicaThatCannotLoadIt) {
  for (const std::string& code :
       {std::string("adapter_slots_full"), std::string("adapter_mismatch"),
        std::string("adapter_load_failed"), std::string("adapter_load_timeout")}) {
    upstream_.calls.clear();
    done_ = false;
    ask(kPirate);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_FALSE(done_) << "another may be able to";
      call(i).fail(503, code, v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
    }
    EXPECT_NE(call(0).replica, call(1).replica);
    EXPECT_TRUE(done_);
    EXPECT_EQ(reply_.status, 503U);
    EXPECT_NE(reply_.text.find("\"" + code + "\""), std::string::npos) << reply_.text;
    EXPECT_FALSE(is_down("r1"));
    EXPECT_FALSE(is_down("r2"));
    reply_.text.clear();
  }
}

TEST_F(AdapterFlowTest, WaitsForRoomWhereNoOtherReplicaIsLeftToHaveSome) {
  ask(kPirate);
  EXPECT_EQ(call(0).request.adapter_wait_ms(), 0U);
  call(0).fail(503, "adapter_slots_full", v1::FAULT_UPSTREAM, v1::RETRY_BEFORE_FIRST_TOKEN);
  EXPECT_GT(call(1).request.adapter_wait_ms(), 1000U);
  EXPECT_LE(call(1).request.adapter_wait_ms(), 30'000U);
  answer(1);
  done_ = false;
  ask(kUnary);
  EXPECT_EQ(call(2).request.adapter_wait_ms(), 0U) << "the base model needs no room";
}

TEST_F(AdapterFlowTest, RefusesAnAnswerFromAnotherVersion) {
  ask(kPirate);
  call().content_type = "application/json";
  call().chunk("{}");
  call().adapter = "pirate@2";
  call().finish();
  EXPECT_EQ(reply_.status, 502U);
  EXPECT_NE(reply_.text.find("`pirate@2` instead of `pirate@1`"), std::string::npos) << reply_.text;
  done_ = false;
  reply_.text.clear();
  ask(kStream);
  call(1).chunk("data: a\n\n");
  call(1).adapter = "pirate@1";
  call(1).finish();
  EXPECT_TRUE(reply_.cut_off);
  EXPECT_NE(reply_.text.find("`pirate@1` instead of the base model"), std::string::npos)
      << reply_.text;
}

TEST_F(AdapterFlowTest, RefusesAnAnswerThatNamesNoAdapterWhereItsDigestWasSent) {
  ask(kPirate);
  call().content_type = "application/json";
  call().chunk("{}");
  call().adapter = "";
  call().finish();
  EXPECT_EQ(reply_.status, 502U);
  EXPECT_NE(reply_.text.find("no adapter instead of `pirate@1`"), std::string::npos) << reply_.text;
}

TEST_F(AdapterFlowTest, TakesAnAnswerThatNamesNoAdapterWhereNoDigestIsKnown) {
  serve_from({"r1"});
  ask(kPirate);
  EXPECT_EQ(call().request.adapter_digest(), "");
  call().adapter = "";
  answer(0);
  EXPECT_EQ(reply_.status, 200U);
}

}  // namespace
}  // namespace penstock::proxy
