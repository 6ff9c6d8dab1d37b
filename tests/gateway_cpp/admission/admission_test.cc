#include "admission/admission.h"

#include <gtest/gtest.h>

namespace penstock::admission {
namespace {

const Ask kAsk{.deployment = "mini"};

Load healthy() {
  Load load;
  load.max_in_flight = 10;
  load.in_flight = 9;
  load.ready = 1;
  load.with_room = 1;
  return load;
}

Reject rejected(const Load& load) {
  const Decision decision = decide(kAsk, load);
  const auto* reject = std::get_if<Reject>(&decision);
  if (reject == nullptr) ADD_FAILURE() << "admitted";
  return reject == nullptr ? Reject{} : *reject;
}

TEST(Admission, AdmitsWhenAReplicaHasRoom) {
  EXPECT_TRUE(std::holds_alternative<Admit>(decide(kAsk, healthy())));
}

TEST(Admission, NoLimitIsNoLimit) {
  Load load = healthy();
  load.max_in_flight = 0;
  load.in_flight = 1'000'000;
  EXPECT_TRUE(std::holds_alternative<Admit>(decide(kAsk, load)));
}

struct Case {
  const char* name;
  void (*change)(Load&);
  Reason reason;
  unsigned status;
  const char* code;
  const char* drop_reason;
};

class Rejection : public testing::TestWithParam<Case> {};

TEST_P(Rejection, SaysWhyAndWhenToComeBack) {
  Load load = healthy();
  GetParam().change(load);
  const Reject reject = rejected(load);
  EXPECT_EQ(reject.reason, GetParam().reason);
  const base::Error error = to_error(kAsk, reject);
  EXPECT_EQ(error.status, GetParam().status);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.drop_reason, GetParam().drop_reason);
  EXPECT_GE(error.retry_after, std::chrono::seconds(1));
  EXPECT_LE(error.retry_after, std::chrono::seconds(60));
  EXPECT_TRUE(error.client_may_retry);
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, Rejection,
    testing::Values(Case{"draining", [](Load& load) { load.draining = true; }, Reason::kDraining,
                         503, "draining", "draining"},
                    Case{"full", [](Load& load) { load.in_flight = 10; }, Reason::kGatewayFull, 503,
                         "overloaded", "gateway_full"},
                    Case{"loading",
                         [](Load& load) {
                           load.ready = load.with_room = 0;
                           load.starting = 1;
                         },
                         Reason::kModelLoading, 503, "model_loading", "model_loading"},
                    Case{"nothing", [](Load& load) { load.ready = load.with_room = 0; },
                         Reason::kNoReadyReplica, 503, "overloaded", "no_ready_replica"},
                    Case{"busy", [](Load& load) { load.with_room = 0; }, Reason::kReplicasFull, 429,
                         "overloaded", "replicas_full"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace penstock::admission
