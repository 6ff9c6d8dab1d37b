#include "base/file_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock::base {
namespace {

class FileTextTest : public testing::Test {
 protected:
  ~FileTextTest() override { std::filesystem::remove(path_); }

  void write(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    allow(std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  void allow(std::filesystem::perms rights) { std::filesystem::permissions(path_, rights); }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       ("penstock-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name())))
          .string();
};

TEST_F(FileTextTest, ReadsATokenWithoutTheSpaceAroundIt) {
  write("  5ecre7\r\n");
  EXPECT_EQ(read_token(path_).value(), "5ecre7");
}

TEST_F(FileTextTest, TakesNoTokenThatOthersThanItsOwnerCanUse) {
  using std::filesystem::perms;
  write("5ecre7");
  for (const perms others : {perms::group_read, perms::others_read, perms::group_write}) {
    allow(perms::owner_read | others);
    const auto token = read_token(path_);
    ASSERT_FALSE(token.has_value());
    EXPECT_NE(token.error().message.find("chmod 600 " + path_), std::string::npos);
  }
  allow(perms::owner_read);
  EXPECT_EQ(read_token(path_).value(), "5ecre7");
}

TEST_F(FileTextTest, TakesNothingThatCouldNotStandInAHeader) {
  EXPECT_FALSE(read_token(path_).has_value()) << "no such file";
  for (const std::string text : {"", " \n", "two words", "two\nlines", "\xff"}) {
    write(text);
    EXPECT_FALSE(read_token(path_).has_value()) << text;
  }
}

TEST_F(FileTextTest, ReadsNoFileWithoutEnd) {
  EXPECT_EQ(read_file("/dev/zero"), std::nullopt);
  write("text\n");
  EXPECT_EQ(read_file(path_), "text\n");
}

}  // namespace
}  // namespace penstock::base
