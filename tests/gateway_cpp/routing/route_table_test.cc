#include "routing/route_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "snapshots.h"

namespace penstock::routing {
namespace {

RouteSnapshot two_deployments(std::uint64_t version = 1) {
  return {.version = version,
          .deployments = {deployment("mini", {{"pirate", "pirate@1"}, {"json", "json@2"}}),
                          deployment("team:large")},
          .replicas = {replica("r1", "mini"), replica("r2", "mini", ReplicaState::kStarting),
                       replica("r3", "team:large"), replica("r9", "gone")}};
}

TEST(Routes, KnowNothingBeforeTheFirstSnapshot) {
  const RouteTable table;
  const auto route = table.current()->resolve("mini");
  ASSERT_FALSE(route.has_value());
  EXPECT_EQ(route.error().kind, base::Kind::kNoRoutes);
  EXPECT_EQ(route.error().status, 503U);
  EXPECT_FALSE(table.current()->known());
}

TEST(Routes, NameOnlyWhatCanAnswerNowOrSoon) {
  RouteSnapshot snapshot = two_deployments();
  RouteTable table;
  for (const auto no : {base::Availability::kScaledToZero, base::Availability::kFailed}) {
    snapshot.deployments[0].availability = no;
    table.replace(snapshot);
    EXPECT_EQ(names_of(*table.current()).size(), 1U);
    EXPECT_TRUE(table.current()->resolve("mini").has_value()) << "and its error says why";
  }
  snapshot.deployments[0].availability = base::Availability::kLoading;
  table.replace(snapshot);
  EXPECT_EQ(names_of(*table.current()).size(), 4U);
}

TEST(Routes, ResolveADeploymentByItsName) {
  RouteTable table;
  table.replace(two_deployments());
  const auto route = table.current()->resolve("mini");
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->deployment->name, "mini");
  EXPECT_EQ(route->adapter(), "");
}

TEST(Routes, ResolveAnAliasToItsAdapter) {
  RouteTable table;
  table.replace(two_deployments());
  EXPECT_EQ(table.current()->resolve("mini:json")->adapter(), "json@2");
  EXPECT_EQ(table.current()->resolve("mini:pirate")->adapter(), "pirate@1");
}

TEST(Routes, ADeploymentMayHaveAColonInItsName) {
  RouteTable table;
  table.replace(two_deployments());
  const auto route = table.current()->resolve("team:large");
  ASSERT_TRUE(route.has_value());
  EXPECT_EQ(route->deployment->name, "team:large");
}

TEST(Routes, AnUnknownNameIsAnsweredWithTheNamesThatExist) {
  RouteTable table;
  table.replace(two_deployments());
  for (const char* name : {"maxi", ":pirate", "maxi:pirate", "maxi:pirate@1", "Mini"}) {
    const auto route = table.current()->resolve(name);
    ASSERT_FALSE(route.has_value()) << name;
    EXPECT_EQ(route.error().status, 404U);
    EXPECT_EQ(route.error().code, "model_not_found");
    EXPECT_EQ(route.error().param, "model");
    EXPECT_NE(route.error().message.find("mini, mini:pirate, mini:json, team:large"),
              std::string::npos)
        << route.error().message;
  }
}

TEST(Routes, NoNameMeansTheOnlyDeployment) {
  RouteTable table;
  auto snapshot = two_deployments();
  table.replace(snapshot);
  const auto unclear = table.current()->resolve("");
  ASSERT_FALSE(unclear.has_value());
  EXPECT_EQ(unclear.error().status, 400U);
  EXPECT_EQ(unclear.error().code, "missing_required_parameter");
  EXPECT_EQ(unclear.error().param, "model");
  EXPECT_NE(unclear.error().message.find("mini, mini:pirate"), std::string::npos)
      << unclear.error().message;
  snapshot.deployments.pop_back();
  table.replace(snapshot);
  const auto clear = table.current()->resolve("");
  ASSERT_TRUE(clear.has_value());
  EXPECT_EQ(clear->deployment->name, "mini");
  EXPECT_EQ(clear->adapter(), "");
  table.replace({.version = 3, .deployments = {}, .replicas = {}});
  EXPECT_EQ(table.current()->resolve("").error().status, 400U);
}

TEST(Routes, ADeploymentRefusesOnlyWhatItsReplicasSayTheyCannot) {
  RouteTable table;
  RouteSnapshot snapshot{.version = 1, .deployments = {deployment("mini")}, .replicas = {}};
  table.replace(snapshot);
  EXPECT_FALSE(refuses(*table.current()->resolve("mini"), "/pooling")) << "nobody knows";
  snapshot.deployments[0].endpoints = {"/tokenize", "/v1/embeddings"};
  table.replace(snapshot);
  EXPECT_FALSE(refuses(*table.current()->resolve("mini"), "/tokenize"));
  const auto error = refuses(*table.current()->resolve("mini"), "/v1/chat/completions");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status, 400U);
  EXPECT_EQ(error->code, "unsupported_endpoint");
  EXPECT_EQ(error->param, "model");
  EXPECT_NE(error->message.find("`mini` does not answer at /v1/chat/completions"),
            std::string::npos);
  EXPECT_NE(error->message.find("/tokenize, /v1/embeddings"), std::string::npos) << error->message;
}

TEST(Routes, AHugeUnknownNameIsCutAndALongListToo) {
  RouteTable table;
  RouteSnapshot many{.version = 1, .deployments = {}, .replicas = {}};
  for (int i = 0; i < 100; ++i) many.deployments.push_back(deployment("d" + std::to_string(i)));
  table.replace(many);
  const auto route = table.current()->resolve(std::string(1'000'000, 'x'));
  ASSERT_FALSE(route.has_value());
  EXPECT_LT(route.error().message.size(), 1000U);
  EXPECT_NE(route.error().message.find("and 80 more"), std::string::npos);
}

TEST(Routes, AnEmptySnapshotIsKnownAndSaysSo) {
  RouteTable table;
  table.replace({.version = 3, .deployments = {}, .replicas = {}});
  EXPECT_TRUE(table.current()->known());
  const auto route = table.current()->resolve("mini");
  ASSERT_FALSE(route.has_value());
  EXPECT_EQ(route.error().status, 404U);
  EXPECT_NE(route.error().message.find("No deployment exists yet"), std::string::npos);
}

TEST(Routes, NamesListDeploymentsEachFollowedByItsAdapters) {
  RouteTable table;
  table.replace(two_deployments());
  EXPECT_EQ(names_of(*table.current()),
            (std::vector<std::string>{"mini", "mini:pirate", "mini:json", "team:large"}));
}

TEST(RouteTable, ARouteOutlivesItsDeployment) {
  RouteTable table;
  table.replace(two_deployments(1));
  const Route route = *table.current()->resolve("mini");
  table.replace({.version = 2, .deployments = {}, .replicas = {}});
  EXPECT_EQ(route.deployment->name, "mini");
  EXPECT_FALSE(table.current()->resolve("mini").has_value());
}

TEST(RouteReader, SeesASwapOnItsNextRead) {
  RouteTable table;
  RouteReader reader(table);
  EXPECT_FALSE(reader.read()->known());
  table.replace(two_deployments(5));
  EXPECT_EQ(reader.read()->version(), 5U);
  const Routes* same = reader.read().get();
  EXPECT_EQ(reader.read().get(), same);
}

TEST(RouteReader, ManyThreadsReadWhileOneReplaces) {
  RouteTable table;
  table.replace(two_deployments(1));
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  std::atomic<int> backwards = 0;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      RouteReader reader(table);
      std::uint64_t last = 0;
      while (!stop) {
        const auto routes = reader.read();
        if (routes->version() < last) ++backwards;
        last = routes->version();
        const auto route = routes->resolve("mini");
        if (route->deployment->name != "mini") ++backwards;
      }
    });
  }
  for (std::uint64_t version = 2; version < 200; ++version) table.replace(two_deployments(version));
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace penstock::routing
