#include "http/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "http/router.h"
#include "openai/endpoints.h"

namespace penstock::http {
namespace {

struct Described {
  std::string method;
  std::string path;
  bool operator==(const Described&) const = default;
};

// Paths and methods as they stand in the file: one a line, two and three blanks deep.
std::vector<Described> described() {
  std::vector<Described> all;
  std::string path;
  const std::string_view text = openapi_document();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with("  \"/")) path = line.substr(3, line.rfind('"') - 3);
    if (line == R"(   "get": {)") all.push_back({"GET", path});
    if (line == R"(   "post": {)") all.push_back({"POST", path});
    at = end + 1;
  }
  return all;
}

TEST(Openapi, DescribesEveryNameOfEveryEndpoint) {
  const auto all = described();
  for (const openai::Endpoint& endpoint : openai::endpoints()) {
    std::vector<std::string_view> names{endpoint.path};
    for (const auto alias : endpoint.aliases) {
      if (!alias.empty()) names.push_back(alias);
    }
    for (const auto name : names) {
      EXPECT_EQ(std::ranges::count(all, Described{"POST", std::string(name)}), 1) << name;
    }
  }
}

TEST(Openapi, DescribesNothingThatIsNotThere) {
  const auto all = described();
  ASSERT_GT(all.size(), 20U);
  for (const auto& [method, path] : all) {
    EXPECT_TRUE(std::holds_alternative<Found>(match(method, path))) << method << " " << path;
  }
}

}  // namespace
}  // namespace penstock::http
