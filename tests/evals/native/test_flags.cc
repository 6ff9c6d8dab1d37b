#include "flags.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::evals {
namespace {

Flags flags(std::vector<const char*> words) {
  words.insert(words.begin(), "program");
  return Flags(int(words.size()), words.data(), {"port", "path"});
}

TEST(Flags, GiveTextAndNumbers) {
  const Flags given = flags({"--port", "80", "--path", "/x"});
  EXPECT_EQ(given.number("port"), 80u);
  EXPECT_EQ(given.text("path"), "/x");
}

TEST(Flags, FallBackWhereAllowed) {
  EXPECT_EQ(flags({}).number("port", 7), 7u);
  EXPECT_EQ(flags({}).text("path", "/y"), "/y");
  EXPECT_THROW(flags({}).number("port"), BadFlag);
  EXPECT_THROW(flags({}).text("path"), BadFlag);
}

TEST(Flags, RefuseUnknownNamesAndMissingValues) {
  EXPECT_THROW(flags({"--prot", "80"}), BadFlag);
  EXPECT_THROW(flags({"port", "80"}), BadFlag);
  EXPECT_THROW(flags({"--port"}), BadFlag);
}

TEST(Flags, RefuseWhatIsNoWholeNumber) {
  for (const char* const value : {"", "-1", "8o", "1.5"}) {
    EXPECT_THROW(flags({"--port", value}).number("port"), BadFlag) << value;
  }
}

TEST(FileContent, NamesTheFileThatCannotBeRead) {
  try {
    file_content("/nowhere/at all");
    FAIL();
  } catch (const BadFlag& problem) {
    EXPECT_STREQ(problem.what(), "cannot read \"/nowhere/at all\"");
  }
}

}  // namespace
}  // namespace penstock::evals
