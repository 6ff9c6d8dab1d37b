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

base::GatewayConfig config(std::string cors_origin = {}) {
  base::GatewayConfig config;
  config.cors_origin = std::move(cors_origin);
  return config;
}

TEST(Doors, KnowThisMachineByItsNamesAndAnyAddress) {
  const Doors doors(config(), "box.example.org");
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
  EXPECT_EQ(status(Doors(named, ""), "api.example:443"), 200U);
  EXPECT_EQ(status(Doors(named, ""), "other"), 200U);
  EXPECT_EQ(status(Doors(named, ""), "x.api.example"), 421U);
  named.allow_hosts = {".corp.example"};
  EXPECT_EQ(status(Doors(named, ""), "llm.corp.example:80"), 200U);
  EXPECT_EQ(status(Doors(named, ""), "corp.example"), 421U);
  EXPECT_EQ(status(Doors(named, ""), "xcorp.example"), 421U);
  named.allow_hosts = {"*"};
  EXPECT_EQ(status(Doors(named, ""), "anything"), 200U);
}

TEST(Doors, AreClosedToPagesThatNobodyNamed) {
  EXPECT_EQ(status(Doors(config(), ""), "localhost", "http://page"), 403U);
  EXPECT_EQ(status(Doors(config(), ""), "localhost", "null"), 403U);
  EXPECT_EQ(status(Doors(config(), ""), "localhost:80", "http://localhost:81"), 403U);
  EXPECT_EQ(status(Doors(config(), ""), "localhost:80", "http://localhost:80"), 200U);
  EXPECT_EQ(status(Doors(config("http://page"), ""), "localhost", "http://page"), 200U);
  EXPECT_EQ(status(Doors(config("http://page"), ""), "localhost", "http://page.b"), 403U);
  EXPECT_EQ(status(Doors(config("*"), ""), "localhost", "null"), 200U);
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
