#include "simulated/conversation.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

namespace penstock::replica::simulated {
namespace {

uint32_t tokens_of(const std::string& text) {
  Prompt prompt;
  prompt.add(text);
  return prompt.tokens();
}

TEST(Prompt, HasATokenForEachWord) {
  EXPECT_EQ(tokens_of(""), 0u);
  EXPECT_EQ(tokens_of("   "), 0u);
  EXPECT_EQ(tokens_of("word"), 1u);
  EXPECT_EQ(tokens_of("  two\twords \r\n"), 2u);
  EXPECT_EQ(tokens_of("eight to the word that is longer than that"), 9u);
}

TEST(Prompt, CountsTheWordsOfTextsOneByOne) {
  Prompt prompt;
  prompt.add("one");
  prompt.add("two three");
  EXPECT_EQ(prompt.tokens(), 3u);
}

TEST(Prompt, CountsWordsOfAnyBytesAsAStreamReadsThem) {
  std::mt19937 random(20'261'124);
  const std::string bytes = std::string(" \n\t\rab\x0b\x20\x80\x8a\xff", 11) + std::string(1, '\0');
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 50, ' ');
    for (char& c : text) c = bytes[random() % bytes.size()];
    std::string blanks = text;  // of a stream's blanks, a vertical tab is none here
    for (char& c : blanks) c = c == '\x0b' ? 'x' : c;
    std::istringstream stream(blanks);
    uint32_t words = 0;
    for (std::string word; stream >> word;) ++words;
    ASSERT_EQ(tokens_of(text), words) << ::testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace penstock::replica::simulated
