// What adapters are named by: aliases, shares, and versions themselves.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "routing/hashing.h"
#include "routing/route_table.h"
#include "snapshots.h"

namespace penstock::routing {
namespace {

constexpr const char* kFamily = "mini-family";

AdapterVersion version(const std::string& name, const std::string& family = kFamily) {
  return {.name = name, .digest = "digest of " + name, .base_family = family, .created = 5};
}

DeploymentRoute of_family(const std::string& name, std::vector<AdapterAlias> aliases = {},
                          const std::string& family = kFamily) {
  DeploymentRoute route = deployment(name, std::move(aliases));
  route.base_family = family;
  return route;
}

class AdapterRoutes : public testing::Test {
 protected:
  void serve(std::vector<DeploymentRoute> deployments, std::vector<AdapterVersion> versions) {
    table_.replace({.version = 1,
                    .deployments = std::move(deployments),
                    .replicas = {},
                    .adapters = std::move(versions)});
  }
  // "name@version digest", "base" or the error's code.
  std::string resolved(const std::string& model, const std::string& sticky = "") {
    const auto route = table_.current()->resolve(model, [&] { return hash_text(sticky); });
    if (!route) return route.error().code;
    if (!route->version) return "base";
    return std::string(route->adapter()) + " " + std::string(route->digest());
  }
  std::string message(const std::string& model) {
    const auto route = table_.current()->resolve(model);
    return route ? "" : route.error().message;
  }

  RouteTable table_;
};

TEST_F(AdapterRoutes, EachFormOfANameStandsForWhatItSays) {
  serve({of_family("mini", {{"pirate", "pirate@1"}}),
         of_family("team:mini", {{"pirate", "pirate@2"}}), of_family("maxi", {}, "maxi-family")},
        {version("pirate@1"), version("pirate@2"), version("large@1", "maxi-family")});
  const std::map<std::string, std::string> table = {
      {"mini", "base"},
      {"mini:pirate", "pirate@1 digest of pirate@1"},
      {"mini:pirate@1", "pirate@1 digest of pirate@1"},
      {"mini:pirate@2", "pirate@2 digest of pirate@2"},
      {"team:mini", "base"},
      {"team:mini:pirate", "pirate@2 digest of pirate@2"},
      {"team:mini:pirate@1", "pirate@1 digest of pirate@1"},
      {"maxi:large@1", "large@1 digest of large@1"},
      {"mini:large@1", "model_not_found"},
      {"maxi:pirate@1", "model_not_found"},
      {"maxi:pirate", "model_not_found"},
      {"mini:pirate@3", "model_not_found"},
      {"mini:pirate@", "model_not_found"},
      {"mini:@1", "model_not_found"},
      {"mini:@", "model_not_found"},
      {"mini:", "model_not_found"},
      {":pirate@1", "model_not_found"},
      {"pirate@1", "model_not_found"},
      {"team:pirate@1", "model_not_found"},
      {"mini:x:pirate@1", "model_not_found"},
      {"mini@1", "model_not_found"},
  };
  for (const auto& [model, expected] : table) EXPECT_EQ(resolved(model), expected) << model;
}

TEST_F(AdapterRoutes, AnAliasIsFoundBeforeAVersionOfItsSpelling) {
  serve({of_family("mini", {{"pirate@1", "poet@1"}})}, {version("pirate@1"), version("poet@1")});
  EXPECT_EQ(resolved("mini:pirate@1"), "poet@1 digest of poet@1");
}

TEST_F(AdapterRoutes, AnAliasWhoseVersionIsNotListedOrFitsAnotherModelFailsClosed) {
  serve({of_family("mini", {{"gone", "gone@1"}, {"large", "large@1"}, {"pirate", "pirate@1"}})},
        {version("pirate@1"), version("large@1", "maxi-family")});
  for (const char* model : {"mini:gone", "mini:large"}) {
    const auto route = table_.current()->resolve(model);
    ASSERT_FALSE(route.has_value()) << model;
    EXPECT_EQ(route.error().status, 503U);
    EXPECT_EQ(route.error().code, "adapter_unknown");
    EXPECT_FALSE(table_.current()->describe(model).has_value());
  }
  EXPECT_NE(message("mini:gone").find("`mini:gone` stands for the adapter `gone@1`"),
            std::string::npos)
      << message("mini:gone");
  EXPECT_EQ(names_of(*table_.current()),
            (std::vector<std::string>{"mini", "mini:pirate", "mini:pirate@1"}));
}

TEST_F(AdapterRoutes, NothingFitsAModelOfNoFamily) {
  serve({of_family("mini", {{"pirate", "pirate@1"}}, "")}, {version("pirate@1", "")});
  EXPECT_EQ(resolved("mini:pirate"), "adapter_unknown");
  EXPECT_EQ(resolved("mini:pirate@1"), "model_not_found");
}

TEST_F(AdapterRoutes, AHeadThatListsNoVersionsNamesThemByAliasAlone) {
  serve({of_family("mini", {{"pirate", "pirate@1"}})}, {});
  EXPECT_EQ(resolved("mini:pirate"), "pirate@1 ");
  EXPECT_EQ(resolved("mini:pirate@1"), "model_not_found");
}

TEST_F(AdapterRoutes, SharesAreStickyAndExactInTheLongRun) {
  const AdapterAlias split{"pirate", "pirate@1", {{"pirate@1", 90}, {"pirate@2", 10}}};
  serve({of_family("mini", {split})}, {version("pirate@1"), version("pirate@2")});
  int second = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string session = "session " + std::to_string(i);
    const std::string first = resolved("mini:pirate", session);
    EXPECT_EQ(resolved("mini:pirate", session), first);
    second += first == "pirate@2 digest of pirate@2";
  }
  EXPECT_NEAR(second, 2'000, 200);
}

TEST_F(AdapterRoutes, AShareWhoseVersionIsNotListedFailsClosedForItsSessionsAlone) {
  const AdapterAlias split{"pirate", "pirate@1", {{"pirate@1", 50}, {"pirate@2", 50}}};
  serve({of_family("mini", {split})}, {version("pirate@1")});
  std::map<std::string, int> answers;
  for (int i = 0; i < 1000; ++i) ++answers[resolved("mini:pirate", std::to_string(i))];
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_NEAR(answers["adapter_unknown"], 500, 80);
}

TEST_F(AdapterRoutes, ARouteKeepsItsVersionWhenTheAliasMovesAndTheVersionGoes) {
  serve({of_family("mini", {{"pirate", "pirate@1"}})}, {version("pirate@1")});
  const Route route = *table_.current()->resolve("mini:pirate");
  serve({of_family("mini", {{"pirate", "pirate@2"}})}, {version("pirate@2")});
  EXPECT_EQ(route.adapter(), "pirate@1");
  EXPECT_EQ(route.digest(), "digest of pirate@1");
  EXPECT_EQ(resolved("mini:pirate"), "pirate@2 digest of pirate@2");
}

TEST_F(AdapterRoutes, AnUnknownAdapterIsAnsweredWithWhatItsDeploymentHas) {
  serve({of_family("maxi"), of_family("mini", {{"pirate", "pirate@2"}})},
        {version("pirate@2"), version("pirate@1")});
  for (const char* model : {"mini:nobody", "mini:pirate@3", "mini:"}) {
    EXPECT_NE(message(model).find("These do: mini, mini:pirate, mini:pirate@1, mini:pirate@2."),
              std::string::npos)
        << message(model);
  }
  EXPECT_NE(message("nobody").find("These do: maxi, mini, mini:pirate, maxi:pirate@1,"),
            std::string::npos)
      << message("nobody");
}

TEST_F(AdapterRoutes, DescribeTheLargestShareOfASplitAsItsVersion) {
  const AdapterAlias split{"pirate", "pirate@1", {{"pirate@1", 10}, {"pirate@2", 90}}};
  serve({of_family("mini", {split})}, {version("pirate@1"), version("pirate@2")});
  const auto routes = table_.current();
  const auto name = routes->describe("mini:pirate");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->version->name, "pirate@2");
  EXPECT_EQ(name->alias->alias, "pirate");
  EXPECT_EQ(routes->describe("mini:pirate@1")->version->created, 5);
  EXPECT_EQ(routes->describe("mini:pirate@1")->alias, nullptr);
  EXPECT_EQ(routes->describe("mini")->version, nullptr);
  EXPECT_FALSE(routes->describe("mini:nobody").has_value());
}

TEST_F(AdapterRoutes, ListNoMoreThanSoManyVersionsOfManyDeployments) {
  std::vector<DeploymentRoute> deployments;
  for (int i = 0; i < 30; ++i) {
    deployments.push_back(of_family("mini-" + std::to_string(i), {{"pirate", "pirate@1"}}));
  }
  std::vector<AdapterVersion> versions;
  for (int i = 0; i < 1000; ++i) versions.push_back(version("pirate@" + std::to_string(i)));
  serve(deployments, versions);
  const auto names = names_of(*table_.current());
  EXPECT_EQ(names.size(), 60U + Routes::kVersionsNamed);
  EXPECT_EQ(names[59], "mini-9:pirate") << "every deployment and alias, before any version";
  EXPECT_EQ(resolved("mini-29:pirate@999"), "pirate@999 digest of pirate@999");
}

}  // namespace
}  // namespace penstock::routing
