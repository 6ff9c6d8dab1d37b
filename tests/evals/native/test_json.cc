#include "json.h"

#include <gtest/gtest.h>

namespace penstock::evals {
namespace {

TEST(JsonObject, WritesItsFieldsInOrder) {
  JsonObject object;
  object.count("n", -3).number("x", 0.25).text("s", "a\"b\\c\n").raw("l", "[]");
  EXPECT_EQ(object.str(), R"({"n":-3,"x":0.25,"s":"a\"b\\c?","l":[]})");
}

TEST(JsonObject, IsEmptyWithoutFields) { EXPECT_EQ(JsonObject().str(), "{}"); }

}  // namespace
}  // namespace penstock::evals
