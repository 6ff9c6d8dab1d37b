#include "openai/json_members.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>
#include <vector>

namespace penstock::openai {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs members(std::string_view object) {
  Pairs out;
  for (MemberReader reader(object); reader.next();) {
    out.emplace_back(reader.key(), reader.value());
  }
  return out;
}

TEST(JsonMembers, ReadsEachValueAsItIsWritten) {
  EXPECT_EQ(members(R"( { "a" : 1.5e3 , "b":"x\"},{","c":{"d":[1,"]"]} ,"e":[ ],"f":null} )"),
            (Pairs{{"a", "1.5e3"},
                   {"b", R"("x\"},{")"},
                   {"c", R"({"d":[1,"]"]})"},
                   {"e", "[ ]"},
                   {"f", "null"}}));
  EXPECT_TRUE(members("{}").empty());
}

TEST(JsonMembers, PassOverWhatIsNoObject) {
  for (const char* text : {"", " ", "[1]", "5", "{", R"({")", R"({"a)", R"({"a")", R"({"a":)",
                           R"({"a":"x)", R"({"a":{)", R"({"a":"\)"}) {
    EXPECT_TRUE(members(text).empty()) << text;
  }
}

TEST(JsonMembers, ReplacesSomeAndAddsOthers) {
  const std::array changes = {Member{"b", "[2]"}, Member{"z", "true"}};
  EXPECT_EQ(with_members(R"({"a": 1, "b":{"b":3}})", changes), R"({"a":1,"b":[2],"z":true})");
  EXPECT_EQ(with_members("{}", changes), R"({"b":[2],"z":true})");
}

TEST(JsonMembers, SurvivesAnyBytes) {
  std::mt19937 random(3);
  const std::string alphabet = "{}[]\",:\\a1 \n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "{";
    for (std::size_t i = random() % 30; i > 0; --i) text += alphabet[random() % alphabet.size()];
    EXPECT_LE(members(text).size(), text.size());
  }
}

}  // namespace
}  // namespace penstock::openai
