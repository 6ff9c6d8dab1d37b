#include "base/utf8_text.h"

#include <gtest/gtest.h>

namespace penstock::base {
namespace {

TEST(Utf8Text, CutsNoCharacter) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abc", 2), "ab");
  EXPECT_EQ(cut_text("a\xF0\x9F\x98\x80", 4), "a");
  EXPECT_EQ(cut_text("a\xF0\x9F\x98\x80", 5), "a\xF0\x9F\x98\x80");
  EXPECT_EQ(cut_text("\xC3\xA9", 0), "");
}

TEST(Utf8Text, MakesTextOfAnything) {
  EXPECT_EQ(valid_text("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(valid_text("\xC3("), "\xEF\xBF\xBD(");
  EXPECT_EQ(valid_text("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "a surrogate";
}

TEST(Utf8Text, KnowsAsciiOfAnyLength) {
  for (std::size_t size = 0; size < 40; ++size) {
    std::string text(size, 'a');
    EXPECT_TRUE(is_ascii(text));
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = '\x80';
      EXPECT_FALSE(is_ascii(text)) << size << " " << i;
      text[i] = 'a';
    }
  }
}

}  // namespace
}  // namespace penstock::base
