#include "control_plane/snapshot_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "fake_head.h"
#include "log_capture.h"
#include "temporary_directory.h"

namespace penstock::control_plane {
namespace {

class SnapshotFileTest : public testing::Test {
 protected:
  void overwrite(const std::string& bytes) const {
    std::ofstream(directory_.path() / "snapshot-gw-1.pb", std::ios::binary) << bytes;
  }

  test::TemporaryDirectory directory_;
  test::LogCapture capture_;
  SnapshotFile file_{directory_.path().string(), "gw-1", capture_.log()};
};

TEST_F(SnapshotFileTest, GivesBackWhatWasSavedLast) {
  file_.save(snapshot_of(1, "old"));
  file_.save(snapshot_of(2, "mini"));
  const auto loaded = file_.load();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->SerializeAsString(), snapshot_of(2, "mini").SerializeAsString());
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "snapshot-gw-1.pb"));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "snapshot-gw-1.pb.new"));
}

TEST_F(SnapshotFileTest, NobodyButItsOwnerCanReadIt) {
  constexpr auto kOwner = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  const std::filesystem::path kept = directory_.path() / "snapshot-gw-1.pb";
  const ::mode_t before = ::umask(0);
  file_.save(snapshot_of(1, "mini"));
  EXPECT_EQ(std::filesystem::status(kept).permissions(), kOwner);
  // Halves that others could read, of one that died while it wrote.
  std::ofstream(kept.string() + ".new") << "half";
  file_.save(snapshot_of(2, "mini"));
  ::umask(before);
  EXPECT_EQ(std::filesystem::status(kept).permissions(), kOwner);
}

TEST_F(SnapshotFileTest, NoFileIsNoSnapshotAndNoComplaint) {
  EXPECT_FALSE(file_.load().has_value());
  EXPECT_EQ(capture_.text(), "");
}

TEST_F(SnapshotFileTest, ACorruptFileIsIgnoredWithALogLine) {
  std::string torn = snapshot_of(3, "mini").SerializeAsString();
  torn.resize(torn.size() / 2);
  for (const std::string& bytes : {std::string("not a snapshot"), std::string(), torn}) {
    overwrite(bytes);
    EXPECT_FALSE(file_.load().has_value());
    EXPECT_NE(capture_.text().find("cannot be read"), std::string::npos);
  }
  file_.save(snapshot_of(4, "mini"));
  EXPECT_TRUE(file_.load().has_value());
}

TEST_F(SnapshotFileTest, MakesItsDirectory) {
  SnapshotFile deeper((directory_.path() / "a" / "b").string(), "gw-1", capture_.log());
  deeper.save(snapshot_of(1, "mini"));
  EXPECT_TRUE(deeper.load().has_value());
}

TEST_F(SnapshotFileTest, AnUnwritablePlaceIsLoggedAndNothingElse) {
  overwrite("a file");
  SnapshotFile blocked((directory_.path() / "snapshot-gw-1.pb").string(), "x", capture_.log());
  blocked.save(snapshot_of(1, "mini"));
  EXPECT_NE(capture_.text().find("could not be kept"), std::string::npos);
}

TEST_F(SnapshotFileTest, WithoutADirectoryNothingIsKept) {
  SnapshotFile none("", "gw-1", capture_.log());
  none.save(snapshot_of(1, "mini"));
  EXPECT_FALSE(none.load().has_value());
}

}  // namespace
}  // namespace penstock::control_plane
