// Whether another deployment can honour a request, and as what it is asked there.
#include "routing/elsewhere.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

#include "snapshots.h"

namespace penstock::routing {
namespace {

class ElsewhereTest : public testing::Test {
 protected:
  ElsewhereTest() {
    mini_.base_family = next_.base_family = "mini-family";
    next_.endpoints = {"/v1/chat/completions"};
  }
  // What becomes of a request for `model`.
  std::optional<Route> go(const std::string& model, Needs needs = {}) {
    const Routes routes({.version = 1,
                         .deployments = {mini_, next_},
                         .replicas = {},
                         .adapters = {{"pirate@1", "digest 1", "mini-family", 0},
                                      {"pirate@2", "digest 2", "mini-family", 0},
                                      {"secret@1", "", "mini-family", 0}}});
    needs.model = model;
    if (needs.endpoint.empty()) needs.endpoint = "/v1/chat/completions";
    const auto there = route_elsewhere(routes, *routes.resolve(model), to_, needs);
    if (const auto* why = std::get_if<PassedOver>(&there)) {
      why_ = name(*why);
      return std::nullopt;
    }
    return std::get<Route>(there);
  }

  DeploymentRoute mini_ = deployment("mini", {{"pirate", "pirate@1"}, {"secret", "secret@1"}});
  DeploymentRoute next_ = deployment("next", {{"pirate", "pirate@2"}, {"secret", "secret@1"}});
  std::string to_ = "next";
  std::string why_;  // it did not go there, the last time
};

TEST_F(ElsewhereTest, ABaseModelIsAnsweredByAnyOther) {
  const auto route = go("mini");
  ASSERT_TRUE(route);
  EXPECT_EQ(route->deployment->name, "next");
  EXPECT_EQ(route->adapter(), "");
}

TEST_F(ElsewhereTest, AShadowGoesWithTheAdapterOfItsRule) {
  const Routes routes({.version = 1,
                       .deployments = {mini_, next_},
                       .replicas = {},
                       .adapters = {{"pirate@1", "digest 1", "mini-family", 0}}});
  const auto went = [&](const std::string& deployment, const std::string& adapter, Needs needs) {
    needs.endpoint = "/v1/chat/completions";
    const auto there = route_shadow(routes, deployment, adapter, needs);
    const auto* why = std::get_if<PassedOver>(&there);
    if (why != nullptr) return std::string(name(*why));
    const auto& route = std::get<Route>(there);
    return route.deployment->name + "/" + std::string(route.adapter());
  };
  EXPECT_EQ(went("next", "", {}), "next/");
  EXPECT_EQ(went("next", "pirate@1", {}), "next/pirate@1");
  EXPECT_EQ(went("next", "pirate@9", {}), "no_adapter");
  EXPECT_EQ(went("gone", "", {}), "unknown");
}

TEST_F(ElsewhereTest, NobodyGoesWhereNobodyIs) {
  to_ = "gone";
  EXPECT_FALSE(go("mini"));
  EXPECT_EQ(why_, "unknown");
}

TEST_F(ElsewhereTest, AnAliasIsThatOfTheOther) {
  EXPECT_EQ(go("mini:pirate")->adapter(), "pirate@2");
  EXPECT_EQ(go("mini:pirate@1")->adapter(), "pirate@1");
}

TEST_F(ElsewhereTest, NobodyGetsOtherBytesThanTheVersionThatItNamed) {
  next_.adapters.push_back({"pirate@1", "pirate@2"});
  EXPECT_FALSE(go("mini:pirate@1"));
  EXPECT_EQ(why_, "no_adapter");
}

TEST_F(ElsewhereTest, NobodyGetsBytesThatNobodyKnowsOrNoneInTheirPlace) {
  EXPECT_FALSE(go("mini:secret"));
  next_.adapters.clear();
  EXPECT_FALSE(go("mini:pirate"));
  next_.base_family = "another";
  EXPECT_FALSE(go("mini:pirate@1"));
  EXPECT_TRUE(go("mini"));
}

TEST_F(ElsewhereTest, AnAdapterIsNotGivenToWhoAsksForNone) {
  to_ = "next:pirate";
  EXPECT_FALSE(go("mini"));
}

TEST_F(ElsewhereTest, WhoDoesNotServeTheEndpointIsPassedOver) {
  EXPECT_FALSE(go("mini", {.endpoint = "/v1/embeddings"}));
  EXPECT_EQ(why_, "no_endpoint");
}

TEST_F(ElsewhereTest, WhoCallsNoToolsIsPassedOverByARequestThatBringsSome) {
  EXPECT_TRUE(go("mini", {.tools = true}));
  next_.without_tools = true;
  EXPECT_FALSE(go("mini", {.tools = true}));
  EXPECT_EQ(why_, "no_tools");
  EXPECT_TRUE(go("mini"));
}

TEST_F(ElsewhereTest, WhatEnginesDieOfGoesToNoEngine) {
  EXPECT_FALSE(go("mini", {.no_engine = true}));
  EXPECT_EQ(why_, "has_engine");
  next_.managed = true;
  EXPECT_TRUE(go("mini", {.no_engine = true}));
}

}  // namespace
}  // namespace penstock::routing
