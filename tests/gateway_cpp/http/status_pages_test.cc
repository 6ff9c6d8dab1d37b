#include "http/status_pages.h"

#include <gtest/gtest.h>

#include "base/config.h"
#include "dispatch/believed_routes.h"
#include "fixed_clock.h"
#include "http/programs.h"
#include "http/shadows.h"
#include "log_capture.h"
#include "routing/snapshots.h"

namespace penstock::http {
namespace {

class StatusPagesTest : public testing::Test {
 protected:
  void announce(std::vector<routing::ReplicaRoute> replicas) {
    routes_.replace({.version = 7,
                     .deployments = {routing::deployment("mini", {{"pirate", "pirate@1"}})},
                     .replicas = std::move(replicas)});
  }
  void report(bool serving) {
    routes_.of("mini").report(routes_.replica("mini", 0), {.serving = serving});
  }
  void expect_not_ready(std::string_view reason) {
    const auto page = pages_.ready();
    EXPECT_EQ(page.status, 503U);
    EXPECT_NE(page.body.find("\"reason\":\"" + std::string(reason) + "\""), std::string::npos)
        << page.body;
  }

  const admission::Tenant everything_;
  test::FixedClock clock_;
  observe::Tracer tracer_{{}, nullptr};
  base::Metrics metrics_;
  runtime::GatewayState state_;
  test::LogCapture log_;
  admission::Suspects suspects_{"gw-1", std::chrono::minutes(10)};
  admission::TenantTable tenants_;
  runtime::SideThreads aside_{1};
  runtime::BodyBudget bodies_{1000};
  dispatch::BelievedRoutes routes_{clock_};
  control_plane::SubscriptionState subscription_;
  admission::UsageBook usage_;
  observe::RecordStore store_{1UL << 20U};
  const base::GatewayConfig config_ = [] {
    base::GatewayConfig config;
    config.node = "m1";
    return config;
  }();
  Shadows shadows_{config_, "instance"};
  admission::CanaryBook canaries_;
  Programs programs_{"", log_.log()};
  const proxy::GatewayParts parts_{
      clock_,          log_.log(), config_,         metrics_,
      state_,          suspects_,  routes_.table(), routes_.dispatchers(),
      tenants_,        usage_,     bodies_,         bodies_,
      bodies_,         aside_,     shadows_.book,   shadows_.kept,
      shadows_.client, canaries_,  programs_.book,  programs_.directory,
      store_,          tracer_,    nullptr};
  StatusPages pages_{parts_, routes_.routes(), routes_.dispatch(), [this] { return subscription_; },
                     [this](const auto& replicas) {
                       asked_ = replicas;
                       return std::vector<control_plane::DeepAnswer>(replicas.size(), answer_);
                     }};
  std::vector<control_plane::DeepTarget> asked_;
  control_plane::DeepAnswer answer_;
};

TEST_F(StatusPagesTest, AreLiveWhateverHappens) {
  state_.draining = true;
  EXPECT_EQ(pages_.live().status, 200U);
  EXPECT_EQ(pages_.ping().status, 200U);
}

TEST_F(StatusPagesTest, AreNotAliveWhileAnAcceleratorOfTheMachineIsLost) {
  const auto lose = [&](std::vector<routing::LostAccelerators> lost) {
    routes_.replace(
        {.version = 7, .deployments = {}, .replicas = {}, .lost_accelerators = std::move(lost)});
  };
  subscription_.source = control_plane::RouteSource::kControl;
  lose({{"m2", "NVIDIA H200 GPU-1"}});
  EXPECT_EQ(pages_.ping().status, 200U);
  lose({{"m1", "NVIDIA H200 GPU-0"}, {"m2", "NVIDIA H200 GPU-1"}});
  const auto lost = pages_.ping();
  EXPECT_EQ(lost.status, 503U);
  EXPECT_NE(lost.body.find("accelerator_lost"), std::string::npos) << lost.body;
  EXPECT_NE(lost.body.find("NVIDIA H200 GPU-0"), std::string::npos) << lost.body;
  EXPECT_EQ(lost.body.find("GPU-1"), std::string::npos) << lost.body;
  EXPECT_EQ(pages_.live().status, 200U);
  subscription_.source = control_plane::RouteSource::kDisk;  // of before this start
  EXPECT_EQ(pages_.ping().status, 200U);
}

TEST_F(StatusPagesTest, AreNotReadyWithoutASnapshot) { expect_not_ready("no_snapshot"); }

TEST_F(StatusPagesTest, AreNotReadyWithoutADeployment) {
  routes_.replace({.version = 1, .deployments = {}, .replicas = {}});
  expect_not_ready("no_route");
}

TEST_F(StatusPagesTest, AreNotReadyWhileEveryReplicaStartsOrDrainsOrIsDown) {
  announce({routing::replica("r1", "mini", routing::ReplicaState::kStarting)});
  expect_not_ready("no_replica");
  announce({routing::replica("r1", "mini")});
  EXPECT_EQ(pages_.ready().status, 200U);
  report(false);
  expect_not_ready("no_replica");
  report(true);
  routes_.of("mini").note_failure(routes_.replica("mini", 0), routing::Failure::kLost);
  expect_not_ready("no_replica");
  clock_.advance(std::chrono::seconds(2));
  routes_.advance();
  EXPECT_EQ(pages_.ready().status, 200U);
}

TEST_F(StatusPagesTest, AreNotReadyWhileTheGatewayDrains) {
  announce({routing::replica("r1", "mini")});
  state_.draining = true;
  expect_not_ready("draining");
}

TEST_F(StatusPagesTest, StayReadyWithoutTheHeadAndSaySo) {
  announce({routing::replica("r1", "mini")});
  subscription_.source = control_plane::RouteSource::kDisk;
  const auto page = pages_.ready();
  EXPECT_EQ(page.status, 200U);
  EXPECT_EQ(page.body, R"({"status":"ready","snapshot_version":7,"snapshot_source":"disk",)"
                       R"("control_connected":false})");
}

TEST_F(StatusPagesTest, HaveStartedOnceThereWereRoutes) {
  EXPECT_EQ(pages_.started().status, 503U);
  routes_.replace({.version = 1, .deployments = {}, .replicas = {}});
  EXPECT_EQ(pages_.started().status, 200U);
}

TEST_F(StatusPagesTest, TellTheirHealthAsVllmDoes) {
  const auto sick = pages_.health();
  EXPECT_EQ(sick.status, 503U);
  EXPECT_EQ(sick.body, pages_.ready().body);
  announce({routing::replica("r1", "mini")});
  const auto well = pages_.health();
  EXPECT_EQ(well.status, 200U);
  EXPECT_EQ(well.content_type, "");
  EXPECT_EQ(well.body, "");
}

TEST_F(StatusPagesTest, AreDeeplyWellWhenEveryDeploymentHasAReplicaToSendTo) {
  EXPECT_EQ(pages_.deep_health(&everything_).body, pages_.ready().body);
  announce({routing::replica("r1", "mini"), routing::replica("r2", "mini")});
  report(false);
  const auto page = pages_.deep_health(&everything_);
  EXPECT_EQ(page.status, 200U);
  EXPECT_EQ(page.body, R"({"status":"well","deployments":[{"id":"mini","status":"serving",)"
                       R"("replicas":2,"serving":1,"checks":[{"replica":"r2","ok":null}]}],)"
                       R"("snapshot_version":7,)"
                       R"("snapshot_source":"none","control_connected":false})");
}

TEST_F(StatusPagesTest, AreNotDeeplyWellWhileOneDeploymentHasNoReplica) {
  auto other = routing::deployment("other");
  const auto page_when = [&](base::Availability availability) {
    other.availability = availability;
    routes_.replace({.version = 7,
                     .deployments = {routing::deployment("mini"), other},
                     .replicas = {routing::replica("r1", "mini")}});
    return pages_.deep_health(&everything_);
  };
  const auto lost = page_when(base::Availability::kServing);
  EXPECT_EQ(lost.status, 503U);
  EXPECT_NE(lost.body.find(
                R"({"id":"other","status":"no_replica","replicas":0,"serving":0,"checks":[]})"),
            std::string::npos)
      << lost.body;
  EXPECT_EQ(page_when(base::Availability::kLoading).status, 503U);
  EXPECT_EQ(page_when(base::Availability::kFailed).status, 503U);
  EXPECT_EQ(page_when(base::Availability::kScaledToZero).status, 200U);
  EXPECT_EQ(pages_.ready().status, 200U);
}

TEST_F(StatusPagesTest, TellWhatReplicasLastAnsweredAndAreNotWellWhereAllOfADeploymentFail) {
  announce({routing::replica("r1", "mini")});
  clock_.advance(std::chrono::seconds(10));
  answer_ = {control_plane::DeepAnswer::Verdict::kWell, "", std::chrono::milliseconds(12),
             clock_.steady_now() - std::chrono::seconds(3)};
  const auto well = pages_.deep_health(&everything_);
  EXPECT_EQ(well.status, 200U);
  EXPECT_NE(
      well.body.find(R"("checks":[{"replica":"r1","ok":true,"latency_ms":12,"age_ms":3000}])"),
      std::string::npos)
      << well.body;
  answer_.verdict = control_plane::DeepAnswer::Verdict::kUnwell;
  answer_.detail = "no tokens";
  const auto unwell = pages_.deep_health(&everything_);
  EXPECT_EQ(unwell.status, 503U);
  EXPECT_NE(unwell.body.find(R"("status":"unwell")"), std::string::npos) << unwell.body;
  EXPECT_NE(unwell.body.find(R"("detail":"no tokens")"), std::string::npos) << unwell.body;
  EXPECT_EQ(pages_.deep_health(nullptr).status, 503U);
  EXPECT_EQ(pages_.deep_health(nullptr).body.find("r1"), std::string::npos);
}

TEST_F(StatusPagesTest, AskNoProviderAndNobodyWhoIsNotReady) {
  auto managed = routing::deployment("bought");
  managed.managed = true;
  routes_.replace({.version = 7,
                   .deployments = {managed, routing::deployment("mini")},
                   .replicas = {routing::replica("p1", "bought"), routing::replica("r1", "mini"),
                                routing::replica("r2", "mini", routing::ReplicaState::kStarting)}});
  const auto page = pages_.deep_health(&everything_);
  EXPECT_EQ(page.status, 200U);
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].replica_id, "r1");
  EXPECT_NE(page.body.find(R"({"id":"bought","status":"serving","replicas":1,"serving":1,)"
                           R"("checks":[]})"),
            std::string::npos)
      << page.body;
}

TEST_F(StatusPagesTest, TellOfNoDeploymentThatTheViewerMayNotUse) {
  routes_.replace({.version = 7,
                   .deployments = {routing::deployment("mini"), routing::deployment("secret")},
                   .replicas = {routing::replica("r1", "mini")}});
  const admission::Tenant some{.id = "acme", .models = {"mini"}};
  const auto own = pages_.deep_health(&some);
  EXPECT_EQ(own.status, 200U);
  EXPECT_NE(own.body.find(R"("id":"mini")"), std::string::npos);
  EXPECT_EQ(own.body.find("secret"), std::string::npos) << own.body;
  const auto strange = pages_.deep_health(nullptr);
  EXPECT_EQ(strange.status, 503U);
  EXPECT_EQ(strange.body, R"({"status":"degraded","snapshot_version":7,)"
                          R"("snapshot_source":"none","control_connected":false})");
  const auto none = pages_.model(some, "other");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().status, 404U);
  EXPECT_EQ(none.error().message.find("secret"), std::string::npos) << none.error().message;
}

TEST_F(StatusPagesTest, TellTheirVersion) {
  const auto page = pages_.version();
  EXPECT_EQ(page.body, "{\"version\":\"" + std::string(base::version()) + "\"}");
}

TEST_F(StatusPagesTest, ListDeploymentsAndTheirAdapters) {
  announce({});
  const auto page = pages_.models({});
  EXPECT_NE(page.body.find(R"("id":"mini","object":"model")"), std::string::npos) << page.body;
  EXPECT_NE(page.body.find(R"("id":"mini:pirate")"), std::string::npos);
  EXPECT_NE(page.body.find(R"("root":"pirate@1","parent":"mini")"), std::string::npos);
}

TEST_F(StatusPagesTest, ShowOneModelOrSayThatItDoesNotExist) {
  announce({});
  const auto page = pages_.model({}, "mini:pirate");
  ASSERT_TRUE(page.has_value());
  EXPECT_TRUE(page->body.starts_with(R"({"id":"mini:pirate")"));
  const auto none = pages_.model({}, "other");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().status, 404U);
}

}  // namespace
}  // namespace penstock::http
