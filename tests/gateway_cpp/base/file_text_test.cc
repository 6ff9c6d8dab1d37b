#include "base/file_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock::base {
namespace {

class FileTextTest : public testing::Test {
 protected:
  ~FileTextTest() override { std::filesystem::remove(path_); }

  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ =
      (std::filesystem::temp_directory_path() /
       ("penstock-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name())))
          .string();
};

TEST_F(FileTextTest, ReadsATokenWithoutTheSpaceAroundIt) {
  write("  5ecre7\r\n");
  EXPECT_EQ(read_token(path_), "5ecre7");
}

TEST_F(FileTextTest, TakesNothingThatCouldNotStandInAHeader) {
  EXPECT_EQ(read_token(path_), std::nullopt) << "no such file";
  for (const std::string text : {"", " \n", "two words", "two\nlines", "\xff"}) {
    write(text);
    EXPECT_EQ(read_token(path_), std::nullopt) << text;
  }
}

TEST_F(FileTextTest, ReadsNoFileWithoutEnd) {
  EXPECT_EQ(read_file("/dev/zero"), std::nullopt);
  write("text\n");
  EXPECT_EQ(read_file(path_), "text\n");
}

}  // namespace
}  // namespace penstock::base
