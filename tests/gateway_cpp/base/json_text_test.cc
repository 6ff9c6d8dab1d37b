#include "base/json_text.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace penstock::base
