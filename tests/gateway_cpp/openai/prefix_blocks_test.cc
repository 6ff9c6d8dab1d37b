#include "openai/prefix_blocks.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::openai {
namespace {

const Endpoint& chat() { return *find_endpoint("/v1/chat/completions"); }

std::string body(const std::string& system, const std::string& question,
                 const std::string& space = "") {
  return R"({"model":"mini",)" + space + R"("messages":)" + space +
         R"([{"role":"system","content":")" + system + R"("},)" + space +
         R"({"role":"user","content":")" + question + R"("}]})";
}

TEST(PrefixBlocks, AreAlikeAsFarAsPromptsAre) {
  const std::string system(2000, 's');
  const auto one = prefix_blocks(body(system, std::string(600, 'a')), chat(), 0);
  const auto other = prefix_blocks(body(system, std::string(600, 'b')), chat(), 0);
  ASSERT_GE(one.size(), 10U);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(one[i], other[i]) << i;
  EXPECT_NE(one.back(), other.back());
}

TEST(PrefixBlocks, DoNotSeeWhiteSpaceBetweenTokensButThatInTexts) {
  const std::string system(1000, 's');
  EXPECT_EQ(prefix_blocks(body(system, "q"), chat(), 0),
            prefix_blocks(body(system, "q", "\n  "), chat(), 0));
  const std::string spaced(R"(a \" b )" + system);
  EXPECT_NE(prefix_blocks(body(spaced, "q"), chat(), 0),
            prefix_blocks(body(R"(a\"b)" + system, "q"), chat(), 0));
}

TEST(PrefixBlocks, DifferWhereAnAdapterDoes) {
  const std::string system(1000, 's');
  EXPECT_NE(prefix_blocks(body(system, "q"), chat(), 1),
            prefix_blocks(body(system, "q"), chat(), 2));
}

TEST(PrefixBlocks, AreBoundedAndNoneForAShortPromptOrOneThatIsNotThere) {
  EXPECT_EQ(prefix_blocks(body(std::string(1'000'000, 's'), "q"), chat(), 0).size(), 128U);
  EXPECT_TRUE(prefix_blocks(body("s", "q"), chat(), 0).empty());
  EXPECT_TRUE(prefix_blocks("{}", chat(), 0).empty());
}

}  // namespace
}  // namespace penstock::openai
