#include "observe/collector.h"

#include <gtest/gtest.h>

#include <map>

namespace penstock::observe {
namespace {

using Set = std::map<std::string, std::string>;

base::Result<Collector> read(const Set& set) {
  return collector_of([&set](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

std::string why_not(Set set) {
  set.try_emplace("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
  const auto collector = read(set);
  return collector ? "accepted" : collector.error().message;
}

TEST(Collector, IsNowhereUnlessItIsNamed) {
  EXPECT_EQ(read({})->url, "");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}})->url, "");
}

TEST(Collector, HasThePathOfTracesBelowTheAddressOfAllAndNoOtherBelowItsOwn) {
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}})->url,
            "http://c:4318/v1/traces");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/"}})->url,
            "https://c/otlp/v1/traces");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://other"},
                  {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/here"}})
                ->url,
            "http://c:4318/here");
}

TEST(Collector, IsNotSentToWhereTheOperatorTurnedItOff) {
  const std::string url = "http://c:4318";
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", url}, {"OTEL_SDK_DISABLED", "True"}})->url, "");
  EXPECT_EQ(read({{"OTEL_EXPORTER_OTLP_ENDPOINT", url}, {"OTEL_TRACES_EXPORTER", "none"}})->url,
            "");
}

TEST(Collector, TakesAllElseAsItIsSaidForTracesOrForAll) {
  const auto collector = read({{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c"},
                               {"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%2C, x-team = ml,"},
                               {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.pem"},
                               {"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/ca.pem"},
                               {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/me.pem"},
                               {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/me.key"},
                               {"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"},
                               {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                               {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
                               {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"},
                               {"OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod"}});
  ASSERT_TRUE(collector.has_value()) << collector.error().message;
  EXPECT_EQ(collector->headers, (NamedTexts{{"api-key", "a b,"}, {"x-team", "ml"}}));
  EXPECT_EQ(collector->certificates, "/ca.pem");
  EXPECT_EQ(collector->client_certificate, "/me.pem");
  EXPECT_EQ(collector->client_key, "/me.key");
  EXPECT_EQ(collector->timeout, std::chrono::milliseconds(2500));
  EXPECT_TRUE(collector->compresses);
  EXPECT_EQ(collector->resource, (NamedTexts{{"deployment.environment.name", "prod"}}));
}

TEST(Collector, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"}}),
            "OTEL_EXPORTER_OTLP_ENDPOINT is not http:// or https:// with a host: no traces are "
            "sent");
  EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http:///v1"}}),
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not http:// or https:// with a host: no traces "
            "are sent");
  EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}),
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', and a gateway speaks http/protobuf: no traces "
            "are sent");
  EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"}}),
            "OTEL_EXPORTER_OTLP_TIMEOUT is '10s', not milliseconds: no traces are sent");
  EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"}}),
            "OTEL_EXPORTER_OTLP_COMPRESSION is 'zstd', not gzip or none: no traces are sent");
}

TEST(Collector, TellsNoSecretWhereHeadersAreWrong) {
  for (const char* value :
       {"s3cret", "=s3cret", "a=%zzs3cret", "a=s3cret%0d%0ab:c", "a b=s3cret"}) {
    EXPECT_EQ(why_not({{"OTEL_EXPORTER_OTLP_HEADERS", value}}),
              "OTEL_EXPORTER_OTLP_HEADERS is not key=value pairs with commas between them: no "
              "traces are sent");
  }
}

TEST(Collector, IsShownWithoutWhatMayBeSecretInItsAddress) {
  Collector collector;
  for (const auto& [url, shown] :
       Set{{"https://me:pw@c:4318/v1/traces?key=k", "https://c:4318/v1/traces"},
           {"http://c", "http://c"},
           {"http://c/a@b", "http://c/a@b"}}) {
    collector.url = url;
    EXPECT_EQ(collector.shown(), shown);
  }
}

}  // namespace
}  // namespace penstock::observe
