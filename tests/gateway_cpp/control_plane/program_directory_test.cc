#include "control_plane/program_directory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "control_plane/temporary_directory.h"
#include "log_capture.h"
#include "routing/snapshots.h"

namespace penstock::control_plane {
namespace {

class ProgramDirectoryTest : public testing::Test {
 protected:
  ProgramDirectoryTest() { serve("u-1"); }

  void serve(const std::string& uid, bool has_program = true) {
    auto deployment = routing::deployment("mini");
    deployment.uid = uid;
    if (has_program) deployment.program = routing::Program{.digest = "d1"};
    table_.replace({.version = 1, .deployments = {deployment}, .replicas = {}});
  }
  void write(const std::string& text) {
    std::ofstream(directory_.path() / "u-1.json", std::ios::trunc) << text;
  }
  std::shared_ptr<const ProgramSeat> seat() {
    programs_.look(*table_.current());
    return programs_.find("u-1");
  }

  test::LogCapture log_;
  test::TemporaryDirectory directory_;
  routing::RouteTable table_;
  ProgramDirectory programs_{directory_.path(), log_.log()};
};

constexpr const char* kSeat = R"({"address":"127.0.0.1:81","token":"ab","digests":["d1"],"pid":7})";

TEST_F(ProgramDirectoryTest, TellsWhereTheProgramsOfADeploymentAre) {
  EXPECT_EQ(seat(), nullptr);
  write(kSeat);
  ASSERT_NE(seat(), nullptr);
  EXPECT_EQ(*seat(), (ProgramSeat{"127.0.0.1:81", "ab", {"d1"}}));
  EXPECT_TRUE(seat()->runs("d1"));
  EXPECT_FALSE(seat()->runs("d2"));
}

TEST_F(ProgramDirectoryTest, ForgetsAProcessWhoseFileHasGone) {
  write(kSeat);
  ASSERT_NE(seat(), nullptr);
  std::filesystem::remove(directory_.path() / "u-1.json");
  EXPECT_EQ(seat(), nullptr);
}

TEST_F(ProgramDirectoryTest, LooksForNobodyWhereNoDeploymentHasAProgram) {
  write(kSeat);
  serve("u-1", false);
  EXPECT_FALSE(programs_.look(*table_.current()));
  EXPECT_EQ(programs_.find("u-1"), nullptr);
}

TEST_F(ProgramDirectoryTest, BelievesNoFileThatMakesNoSense) {
  for (const std::string& text : std::vector<std::string>{
           "{", "[]", R"({"address":"127.0.0.1:81"})",
           R"({"address":"10.0.0.1:81","token":"ab","digests":["d1"]})",
           R"({"address":"127.0.0.1:81","token":"a\nb","digests":["d1"]})",
           R"({"address":"127.0.0.1:81","token":"ab","digests":[7]})",
           R"({"address":"127.0.0.1:81","token":")" + std::string(300, 'a') + R"(","digests":[]})",
           std::string(1'000, '['), std::string(100'000, ' ') + kSeat}) {
    write(text);
    EXPECT_EQ(seat(), nullptr) << text.substr(0, 80);
    EXPECT_NE(log_.text().find("makes no sense"), std::string::npos);
  }
}

TEST_F(ProgramDirectoryTest, SaysOnceThatAFileMakesNoSense) {
  write("{");
  seat();
  EXPECT_NE(log_.text().find("makes no sense"), std::string::npos);
  seat();
  EXPECT_EQ(log_.text().find("makes no sense"), std::string::npos);
}

TEST_F(ProgramDirectoryTest, LeavesItsDirectoryForNoUid) {
  serve("../u-1");
  write(kSeat);
  programs_.look(*table_.current());
  EXPECT_EQ(programs_.find("../u-1"), nullptr);
}

}  // namespace
}  // namespace penstock::control_plane
