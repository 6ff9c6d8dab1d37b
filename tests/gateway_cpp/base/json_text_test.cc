#include "base/json_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace penstock::base {
namespace {

TEST(JsonText, EscapesWhatJsonReserves) {
  EXPECT_EQ(json_string("say \"hi\"\\\n\r\t"), R"("say \"hi\"\\\n\r\t")");
  EXPECT_EQ(json_string(std::string_view("\0\x1f\x7f", 3)), "\"\\u0000\\u001f\\u007f\"");
  EXPECT_EQ(json_string(""), R"("")");
}

TEST(JsonText, KeepsEveryLengthOfUtf8) {
  const std::string text = "caf\u00e9 \u20ac \U0001F600";
  EXPECT_EQ(json_string(text), "\"" + text + "\"");
}

TEST(JsonText, ReplacesEachByteThatIsNotUtf8) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(json_string("a\xFFz"), "\"a" + replaced + "z\"");
  EXPECT_EQ(json_string("\xE2\x82"), "\"" + replaced + replaced + "\"");
  EXPECT_EQ(json_string("\xC0\xAF"), "\"" + replaced + replaced + "\"");  // overlong
  EXPECT_EQ(json_string("\xED\xA0\x80"),
            "\"" + replaced + replaced + replaced + "\"");  // surrogate
  EXPECT_EQ(json_string("\xF4\x90\x80\x80"),
            "\"" + replaced + replaced + replaced + replaced + "\"");  // beyond U+10FFFF
}

// One byte after the other, as the words are looked at eight at a time.
std::string one_by_one(std::string_view ascii) {
  std::string text = "\"";
  for (const char c : ascii) {
    const std::string alone = json_string({&c, 1});
    text += alone.substr(1, alone.size() - 2);
  }
  return text + "\"";
}

TEST(JsonText, WritesWhatReservedCharactersStandBetween) {
  for (std::size_t size = 0; size < 40; ++size) {
    EXPECT_EQ(json_string(std::string(size, 'x')), "\"" + std::string(size, 'x') + "\"");
    for (std::size_t at = 0; at < size; ++at) {
      for (const char c : {'"', '\\', '\n', '\x01', '\x7f', '~', ' '}) {
        std::string text(size, 'x');
        text[at] = c;
        EXPECT_EQ(json_string(text), one_by_one(text));
      }
    }
  }
}

TEST(JsonText, WritesTheSameIntoRoomThatWasMadeForIt) {
  std::mt19937 random(20'261'123);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() % 256 : 'x');
    std::string room(json_string_room(text) + 1, '#');
    TextCursor cursor(room.data());
    cursor = put_json_string(cursor, text);
    EXPECT_EQ(room.back(), '#');
    EXPECT_EQ(std::string_view(room.data(), cursor.at()), json_string(text));
  }
}

}  // namespace
}  // namespace penstock::base
