#include "http/doors.h"

#include <gtest/gtest.h>

namespace penstock::http {
namespace {

unsigned status(const Doors& doors, std::string_view host, std::string_view origin = {}) {
  RequestHead head;
  head.host = host;
  head.origin = origin;
  const auto refused = doors.refusal(head);
  return refused ? refused->status : 200;
}

base::GatewayConfig config(std::vector<std::string> cors_origins = {}) {
  base::GatewayConfig config;
  config.cors_origins = std::move(cors_origins);
  return config;
}

std::string no_full_name(const std::string& /*name*/) { return {}; }

const MachineName kBox("box.example.org", no_full_name);
const MachineName kNameless("", no_full_name);

TEST(Doors, KnowThisMachineByItsNamesAndAnyAddress) {
  const Doors doors(config(), kBox);
  for (const char* host :
       {"localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]", "10.0.0.5",
        "box:80", "Box.Example.org", "box.example.org.:80", "chat.localhost:8080", ""}) {
    EXPECT_EQ(status(doors, host), 200U) << host;
  }
  for (const char* host : {"attacker.example", "127.0.0.1.attacker.example", "localhost.a", "a:80",
                           "example.org", "1.2.3"}) {
    EXPECT_EQ(status(doors, host), 421U) << host;
  }
}

TEST(Doors, KnowTheNamesThatTheyAreTold) {
  base::GatewayConfig named = config();
  named.allow_hosts = {"api.example", "other:80"};
  EXPECT_EQ(status(Doors(named, kNameless), "api.example:443"), 200U);
  EXPECT_EQ(status(Doors(named, kNameless), "other"), 200U);
  EXPECT_EQ(status(Doors(named, kNameless), "x.api.example"), 421U);
  named.allow_hosts = {".corp.example"};
  EXPECT_EQ(status(Doors(named, kNameless), "llm.corp.example:80"), 200U);
  EXPECT_EQ(status(Doors(named, kNameless), "corp.example"), 421U);
  EXPECT_EQ(status(Doors(named, kNameless), "xcorp.example"), 421U);
  named.allow_hosts = {"*"};
  EXPECT_EQ(status(Doors(named, kNameless), "anything"), 200U);
}

TEST(Doors, LetWhoeverReachesTheStatusPortReadItUnlessItIsOnLoopback) {
  base::GatewayConfig shown = config();
  const auto scraped = [&shown](std::string_view origin) {
    const Doors doors(shown, kNameless, hosts_of_status_port(shown));
    return status(doors, "gateway.prod.svc.cluster.local:8083", origin);
  };
  for (const char* host : {"127.0.0.1", "localhost", "::1"}) {
    shown.metrics = {host, 8083};
    EXPECT_EQ(scraped(""), 421U) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.5", "box.example.org"}) {
    shown.metrics = {host, 8083};
    EXPECT_EQ(scraped(""), 200U) << host;
    EXPECT_EQ(scraped("http://page"), 403U) << host;
  }
}

TEST(Doors, AreClosedToPagesThatNobodyNamed) {
  EXPECT_EQ(status(Doors(config(), kNameless), "localhost", "http://page"), 403U);
  EXPECT_EQ(status(Doors(config(), kNameless), "localhost", "null"), 403U);
  EXPECT_EQ(status(Doors(config(), kNameless), "localhost:80", "http://localhost:81"), 403U);
  EXPECT_EQ(status(Doors(config(), kNameless), "localhost:80", "http://localhost:80"), 200U);
  EXPECT_EQ(status(Doors(config({"http://page"}), kNameless), "localhost", "http://page"), 200U);
  EXPECT_EQ(status(Doors(config({"http://page"}), kNameless), "localhost", "http://page.b"), 403U);
  EXPECT_EQ(status(Doors(config({"*"}), kNameless), "localhost", "null"), 200U);
  const Doors two(config({"https://a.example", "https://b.example"}), kNameless);
  EXPECT_EQ(status(two, "localhost", "https://B.example"), 200U);
  EXPECT_EQ(status(two, "localhost", "https://c.example"), 403U);
}

TEST(Doors, TakeForJsonOnlyWhatAPageMayNotSendUnasked) {
  const auto json = [](std::string_view type, std::string_view origin = {}) {
    RequestHead head;
    head.content_type = type;
    head.origin = origin;
    return is_json(head);
  };
  for (const char* type :
       {"", "application/json", "Application/JSON; charset=utf-8", "application/problem+json"}) {
    EXPECT_TRUE(json(type)) << type;
  }
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/xml",
                           "multipart/form-data; boundary=x", "+json", "application/jsonx"}) {
    EXPECT_FALSE(json(type)) << type;
  }
  EXPECT_FALSE(json("", "http://page"));
}

}  // namespace
}  // namespace penstock::http
