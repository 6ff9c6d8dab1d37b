#include "control_plane/snapshot_guard.h"

#include <gtest/gtest.h>

namespace penstock::control_plane {
namespace {

using Kind = SnapshotVerdict::Kind;

penstock::v1::ClusterStamp stamp(const std::string& cluster, std::uint64_t epoch,
                                 std::uint64_t revision) {
  penstock::v1::ClusterStamp stamp;
  stamp.set_cluster_id(cluster);
  stamp.set_epoch(epoch);
  stamp.set_revision(revision);
  return stamp;
}

penstock::v1::RouteSnapshot snapshot(std::uint64_t version,
                                     const penstock::v1::ClusterStamp& stamp = {}) {
  penstock::v1::RouteSnapshot snapshot;
  snapshot.set_version(version);
  *snapshot.mutable_stamp() = stamp;
  return snapshot;
}

const AcceptedSnapshot kHeld{.stamp = stamp("a", 2, 10), .version = 7};

struct Case {
  const char* name;
  AcceptedSnapshot held;
  penstock::v1::RouteSnapshot snapshot;
  Kind kind;
  const char* why;
};

TEST(SnapshotGuard, LetsNoOlderAndNoForeignSnapshotIn) {
  const AcceptedSnapshot unstamped{.stamp = {}, .version = 7};
  const std::vector<Case> cases = {
      {"the first one", {}, snapshot(1, stamp("a", 1, 1)), Kind::kAccept, ""},
      {"the next one", kHeld, snapshot(8, stamp("a", 2, 11)), Kind::kAccept, ""},
      {"the same one", kHeld, snapshot(7, stamp("a", 2, 10)), Kind::kKnown, ""},
      {"the same routes of a newer store", kHeld, snapshot(7, stamp("a", 2, 11)), Kind::kAccept,
       ""},
      {"another cluster's", kHeld, snapshot(8, stamp("b", 9, 99)), Kind::kRefuse, "'b'"},
      {"one of no cluster", kHeld, snapshot(8), Kind::kRefuse, "cluster ''"},
      {"an older epoch's", kHeld, snapshot(8, stamp("a", 1, 99)), Kind::kRefuse, "epoch 1"},
      {"after a take-over", kHeld, snapshot(1, stamp("a", 3, 1)), Kind::kAccept, ""},
      {"an older store's", kHeld, snapshot(8, stamp("a", 2, 9)), Kind::kRefuse, "revision 9"},
      {"an older version", kHeld, snapshot(6, stamp("a", 2, 10)), Kind::kRefuse, "version 6"},
      {"an older head's next", unstamped, snapshot(8), Kind::kAccept, ""},
      {"an older head's same", unstamped, snapshot(7), Kind::kKnown, ""},
      {"an older head's older", unstamped, snapshot(6), Kind::kRefuse, "--take-over"},
      {"the first stamp", unstamped, snapshot(7, stamp("a", 1, 1)), Kind::kAccept, ""}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto verdict = check_snapshot(c.held, c.snapshot);
    EXPECT_EQ(verdict.kind, c.kind);
    EXPECT_NE(verdict.why.find(c.why), std::string::npos) << verdict.why;
  }
}

}  // namespace
}  // namespace penstock::control_plane
