// A request for an adapter whose deployment has a canary: it moves only where it finds weights.
#include "flow_fixture.h"

namespace penstock::proxy {
namespace {

const std::string kByAlias = R"({"model":"mini:pirate","messages":[{}]})";
const std::string kByVersion = R"({"model":"mini:pirate@1","messages":[{}]})";

class AdapterCanaryTest : public RequestFlowTest {
 protected:
  AdapterCanaryTest() { publish(); }

  // All of mini's requests are next's to answer, whose alias names pirate@2.
  void publish() {
    auto mini = routing::deployment("mini", {{"pirate", "pirate@1"}}, limits_);
    auto next = routing::deployment("next", next_aliases_, limits_);
    mini.base_family = next.base_family = "mini-family";
    mini.canary = {{"next", 1000}};
    routes_.replace(
        {.version = 1,
         .deployments = {mini, next},
         .replicas = {routing::replica("r1", "mini"),
                      routing::replica("r2", "next", routing::ReplicaState::kReady, next_holds_)},
         .adapters = versions_});
  }
  void next_reports(std::uint32_t slots, const std::vector<std::string>& adapters = {}) {
    routes_.of("next").report(routes_.replica("next", 0),
                              {.adapters = adapters, .adapter_slots = slots});
  }
  void expect_sent(const std::string& body, const std::string& replica,
                   const std::string& adapter) {
    ask(body);
    FakeUpstream::Opened& opened = *upstream_.calls.back();
    EXPECT_EQ(opened.replica, replica);
    EXPECT_EQ(opened.request.adapter(), adapter);
    opened.content_type = "application/json";
    opened.chunk("{}");
    opened.finish();
    EXPECT_TRUE(done_);
    done_ = false;
  }

  std::vector<routing::AdapterAlias> next_aliases_{{"pirate", "pirate@2"}};
  std::vector<std::string> next_holds_;
  std::vector<routing::AdapterVersion> versions_{{"pirate@1", "digest 1", "mini-family", 0},
                                                 {"pirate@2", "digest 2", "mini-family", 0}};
};

TEST_F(AdapterCanaryTest, IsAskedOnceItReportsSlots) {
  expect_sent(kByAlias, "r1", "pirate@1");
  next_reports(4);
  expect_sent(kByAlias, "r2", "pirate@2");
  expect_sent(kByVersion, "r2", "pirate@1");
}

TEST_F(AdapterCanaryTest, IsAskedForNoAdapterThatItCannotHold) {
  next_reports(0);
  expect_sent(kByAlias, "r1", "pirate@1");
  expect_sent(kByVersion, "r1", "pirate@1");
  expect_sent(kUnary, "r2", "");
}

TEST_F(AdapterCanaryTest, IsAskedForNoAdapterWhenItsReplicaWithSlotsDrains) {
  next_reports(4);
  routes_.of("next").report(routes_.replica("next", 0), {.serving = false, .adapter_slots = 4});
  expect_sent(kByAlias, "r1", "pirate@1");
}

TEST_F(AdapterCanaryTest, IsAskedForWhatItHoldsAlsoWithoutSlots) {
  next_holds_ = {"pirate@1"};
  publish();
  expect_sent(kByVersion, "r2", "pirate@1");
  expect_sent(kByAlias, "r1", "pirate@1");
  next_reports(0, {"pirate@2"});
  expect_sent(kByVersion, "r1", "pirate@1");
  expect_sent(kByAlias, "r2", "pirate@2");
}

TEST_F(AdapterCanaryTest, IsAskedForNoBytesThatNobodyKnows) {
  next_reports(4);
  versions_.back().digest.clear();
  publish();
  expect_sent(kByAlias, "r1", "pirate@1");
  expect_sent(kByVersion, "r2", "pirate@1");
}

TEST_F(AdapterCanaryTest, IsAskedForNoOtherBytesThanTheVersionThatWasNamed) {
  next_reports(4);
  next_aliases_.push_back({"pirate@1", "pirate@2"});
  publish();
  expect_sent(kByVersion, "r1", "pirate@1");
}

TEST_F(AdapterCanaryTest, IsNotAskedWhereItsNameStandsForTheBaseModel) {
  auto mini = routing::deployment("mini", {{"pirate", "pirate@1"}}, limits_);
  mini.base_family = "mini-family";
  mini.canary = {{"next", 1000}};
  routes_.replace(
      {.version = 2,
       .deployments = {mini, routing::deployment("next"), routing::deployment("next:pirate")},
       .replicas = {routing::replica("r1", "mini"), routing::replica("r2", "next"),
                    routing::replica("r3", "next:pirate")},
       .adapters = versions_});
  expect_sent(kByAlias, "r1", "pirate@1");
}

}  // namespace
}  // namespace penstock::proxy
