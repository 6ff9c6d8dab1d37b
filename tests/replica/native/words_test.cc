#include "simulated/words.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

namespace penstock::replica::simulated {
namespace {

TEST(Words, FollowFromTheSeed) {
  EXPECT_EQ(text_of(1, 50), text_of(1, 50));
  EXPECT_NE(text_of(1, 50), text_of(2, 50));
}

TEST(Words, AnAnswerBeginsWithACapitalAndEndsItsSentenceAfterSevenWords) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string sentence = text_of(seed, 7);
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(sentence.front()))) << sentence;
    EXPECT_EQ(sentence.back(), '.') << sentence;
  }
}

TEST(Words, ALongerAnswerBeginsLikeAShorterOne) {
  EXPECT_EQ(text_of(5, 100).substr(0, text_of(5, 40).size()), text_of(5, 40));
}

TEST(Words, EveryTokenIdMeansOneWord) {
  std::set<std::pair<uint32_t, std::string>> seen;
  std::set<uint32_t> ids;
  for (uint64_t i = 1; i < 5000; ++i) {
    const Word word = word_at(3, i);
    seen.emplace(word.token_id, std::string(word.text));
    ids.insert(word.token_id);
  }
  EXPECT_EQ(seen.size(), ids.size());
}

TEST(Words, HoldNothingThatJsonEscapes) {
  for (const char c : text_of(11, 5000)) {
    EXPECT_TRUE(std::isalpha(static_cast<unsigned char>(c)) || c == ' ' || c == '.') << c;
  }
}

TEST(Words, AStopEndsBeforeTheWordInWhichItBegins) {
  const std::string third(word_at(7, 2).text);
  const std::string stops[] = {"not there", third};
  EXPECT_EQ(words_before_stop(7, 100, stops), 2u);
}

TEST(Words, AStopThatBeginsInTheFirstWordLeavesNothing) {
  const std::string stops[] = {std::string(word_at(7, 0).text)};
  EXPECT_EQ(words_before_stop(7, 100, stops), 0u);
}

TEST(Words, AStopBeyondTheEndDoesNotCount) {
  const std::string stops[] = {std::string("."), std::string()};
  EXPECT_EQ(words_before_stop(7, 6, stops), std::nullopt);
  EXPECT_EQ(words_before_stop(7, 7, stops), 6u);
}

TEST(Words, MixingTellsOrderAndBoundariesApart) {
  EXPECT_NE(mix(mix(0, "ab"), "c"), mix(mix(0, "a"), "bc"));
  EXPECT_NE(mix(0, "12345678a"), mix(0, "12345678b"));
  EXPECT_NE(mix(0, ""), mix(0, std::string_view("\0", 1)));
}

}  // namespace
}  // namespace penstock::replica::simulated
