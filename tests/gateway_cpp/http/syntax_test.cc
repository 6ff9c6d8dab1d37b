#include "http/syntax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace penstock::http {
namespace {

TEST(Syntax, FindsAControlCharacterWhereverItStands) {
  for (size_t size = 0; size < 40; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string text(size, 'x');
        text[at] = static_cast<char>(c);
        const bool is = (c < 0x20 && c != '\t') || c == 0x7f;
        ASSERT_EQ(has_control(text), is) << size << " " << at << " " << c;
      }
    }
    ASSERT_FALSE(has_control(std::string(size, '\t')));
  }
}

TEST(Syntax, FindsAControlCharacterBehindATab) {
  EXPECT_TRUE(has_control("a\tword of more than eight\x01"));
  EXPECT_FALSE(has_control("a\tword of more than eight\t"));
}

// RFC 9110, 5.6.2.
TEST(Syntax, KnowsTheCharactersOfATokenFromOthers) {
  const std::string token =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int c = 0; c < 256; ++c) {
    const auto character = static_cast<char>(c);
    EXPECT_EQ(is_token_character(character), token.find(character) != std::string::npos) << c;
  }
}

}  // namespace
}  // namespace penstock::http
