#include "base/config.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/flags.h"

namespace penstock::base {
namespace {

Result<GatewayConfig> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "penstock-gateway");
  return parse_flags(static_cast<int>(words.size()), words.data());
}

std::string message(const std::vector<const char*>& words) {
  const auto config = parse(words);
  return config ? "accepted" : config.error().message;
}

TEST(Config, BoundsTheElementsOfABodyByWhatAReplicaTakes) {
  const auto config = parse({"--control", "h:1", "--body-messages", "10000", "--body-parts=7",
                             "--body-tools=8", "--body-values=500000"});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->body_elements.messages, 10'000U);
  EXPECT_EQ(config->body_elements.parts, 7U);
  EXPECT_EQ(config->body_elements.tools, 8U);
  EXPECT_EQ(config->body_elements.values, 500'000U);
  for (const char* flag : {"--body-messages=10001", "--body-parts=0", "--body-values=500001"}) {
    EXPECT_NE(message({"--control", "h:1", flag}).find("is not a whole number from 1 to"),
              std::string::npos)
        << flag;
  }
}

TEST(Config, HasDefaultsForEverythingButTheHead) {
  const auto config = parse({"--control", "127.0.0.1:8082"});
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->listen.text(), "127.0.0.1:8080");
  EXPECT_EQ(config->control, "127.0.0.1:8082");
  EXPECT_EQ(config->body_limit_bytes, 16U << 20U);
  EXPECT_EQ(config->stream_credit_bytes, 256U << 10U);
  EXPECT_EQ(config->heartbeat, std::chrono::seconds(15));
  EXPECT_GE(config->threads, 1U);
  EXPECT_EQ(config->action, Action::kRun);
}

TEST(Config, TakesValuesAfterASpaceOrAnEqualsSign) {
  const auto config = parse({"--control=h:1", "--listen", "[::1]:0", "--id=gw-1", "--threads=3",
                             "--heartbeat-ms", "0", "--log-level=debug", "--cors-origin="});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->listen.host, "::1");
  EXPECT_EQ(config->listen.text(), "[::1]:0");
  EXPECT_EQ(config->id, "gw-1");
  EXPECT_EQ(config->threads, 3U);
  EXPECT_EQ(config->heartbeat.count(), 0);
  EXPECT_EQ(config->log_level, Level::kDebug);
  EXPECT_TRUE(config->cors_origins.empty());
}

TEST(Config, NamesTheFlagAndTheValueThatAreWrong) {
  EXPECT_EQ(message({"--threads", "0"}), "--threads: '0' is not a whole number from 1 to 256");
  EXPECT_EQ(message({"--threads", "2x"}), "--threads: '2x' is not a whole number from 1 to 256");
  EXPECT_EQ(message({"--listen", "8080"}),
            "--listen: '8080' is not host:port, such as 127.0.0.1:8080");
  EXPECT_EQ(message({"--listen", "h:99999"}),
            "--listen: 'h:99999' is not host:port, such as 127.0.0.1:8080");
  EXPECT_EQ(message({"--drain-ms", "-1"}),
            "--drain-ms: '-1' is not milliseconds from 0 to 86400000");
  EXPECT_EQ(message({"--log-level", "loud"}),
            "--log-level: 'loud' is not debug, info, warning or error");
  EXPECT_EQ(message({"--nonsense", "1"}), "'--nonsense' is not a flag; --help lists them");
  EXPECT_EQ(message({"plain"}), "'plain' is not a flag; --help lists them");
  EXPECT_EQ(message({"--id"}), "--id needs a value");
}

TEST(Config, RefusesAnIdThatWouldLeaveItsDirectory) {
  EXPECT_NE(message({"--control", "h:1", "--id", "../x"}), "accepted");
  EXPECT_NE(message({"--control", "h:1", "--id", ".hidden"}), "accepted");
  EXPECT_EQ(message({"--control", "h:1", "--id", "gw_1.a-b"}), "accepted");
}

TEST(Config, TakesOriginsAsBrowsersSendThem) {
  const auto config = parse({"--control", "h:1", "--cors-origin", "https://a.example",
                             "--cors-origin", "http://localhost:3000", "--cors-origin", "null"});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->cors_origins,
            (std::vector<std::string>{"https://a.example", "http://localhost:3000", "null"}));
  EXPECT_EQ(message({"--control", "h:1", "--cors-origin", "*"}), "accepted");
}

TEST(Config, RefusesAnOriginThatWouldMatchNoPageOrBreakAHeader) {
  for (const char* origin : {"https://a.example/", "a.example", "https://", "https://a\r\nx: y",
                             "https://a,https://b", "://a", "https://a b", "https://\xc3\xa9"}) {
    EXPECT_NE(message({"--control", "h:1", "--cors-origin", origin}), "accepted") << origin;
  }
}

TEST(Config, TellsWhatOnlyThisMachineReaches) {
  for (const char* address : {"0.0.0.0:80", "10.0.0.1:80", "[::]:80", "example.org:80"}) {
    EXPECT_EQ(message({"--control", "h:1", "--listen", address}), "accepted") << address;
    EXPECT_FALSE(parse_address(address)->is_loopback()) << address;
  }
  for (const char* address : {"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "localhost:80"}) {
    EXPECT_TRUE(parse_address(address)->is_loopback()) << address;
  }
}

TEST(Config, TakesFlagsWithoutAValueAndFlagsThatComeTwice) {
  const auto config =
      parse({"--share-port", "--control=h:1", "--allow-host", "a.example", "--allow-host=b",
             "--metrics", "127.0.0.1:0", "--no-client-addresses"});
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_TRUE(config->share_port);
  EXPECT_FALSE(config->open);
  EXPECT_FALSE(config->client_addresses);
  EXPECT_TRUE(parse({"--control=h:1"})->client_addresses);
  EXPECT_EQ(config->allow_hosts, (std::vector<std::string>{"a.example", "b"}));
  EXPECT_EQ(config->metrics.text(), "127.0.0.1:0");
  EXPECT_EQ(message({"--open=yes"}), "--open takes no value");
  EXPECT_NE(message({"--allow-host", "a b", "--control=h:1"}), "accepted");
  EXPECT_NE(message({"--metrics", "8083", "--control=h:1"}), "accepted");
}

TEST(Config, BudgetsBodiesByTheMemoryAndHasRoomForOneAtLeast) {
  EXPECT_GT(parse({"--control=h:1"})->body_budget_bytes, 16U << 20U);
  const auto small = parse({"--control=h:1", "--body-budget-bytes=65536"});
  EXPECT_GT(small->body_budget_bytes, small->body_limit_bytes);
  EXPECT_LT(small->body_budget_bytes, 2 * small->body_limit_bytes);
}

TEST(Config, GivesAClientAPartOfTheBudgetForBodiesWithRoomForOne) {
  const auto quarter = parse({"--control=h:1", "--body-budget-bytes=1073741824"});
  EXPECT_EQ(quarter->body_share_bytes, 1U << 28U);
  const auto named =
      parse({"--control=h:1", "--body-budget-bytes=1073741824", "--body-share-bytes=100000000"});
  EXPECT_EQ(named->body_share_bytes, 100'000'000U);
  const auto small = parse({"--control=h:1", "--body-share-bytes=1"});
  EXPECT_GT(small->body_share_bytes, small->body_limit_bytes);
  const auto large =
      parse({"--control=h:1", "--body-budget-bytes=100000000", "--body-share-bytes=1073741824"});
  EXPECT_EQ(large->body_share_bytes, large->body_budget_bytes);
}

TEST(Config, NeedsAHeadOrAKeptSnapshot) {
  EXPECT_NE(message({}).find("would never have a route"), std::string::npos);
  EXPECT_EQ(message({"--data-dir", "/somewhere"}), "accepted");
}

TEST(Config, HelpAndVersionNeedNothingElse) {
  EXPECT_EQ(parse({"--help"})->action, Action::kHelp);
  EXPECT_EQ(parse({"--version"})->action, Action::kVersion);
}

TEST(Config, UsageNamesEveryFlagWithWhatStandsWithoutIt) {
  const std::string text = usage();
  for (const Flag& flag : flags()) {
    EXPECT_NE(text.find("\n  --" + std::string(flag.name) + " "), std::string::npos) << flag.name;
  }
  for (const char* told : {"where clients connect; port 0: any free one (127.0.0.1:8080)\n",
                           "name, one for each gateway of a head (gateway)\n",
                           "I/O threads (half of the cores)\n", "largest request body (16777216)\n",
                           "tools of one body (256)\n", "silence; 0: none (15000)\n",
                           "warning or error (info)\n", "replicas there are preferred\n"}) {
    EXPECT_NE(text.find(told), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace penstock::base
