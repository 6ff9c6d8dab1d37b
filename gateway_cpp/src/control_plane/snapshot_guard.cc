#include "control_plane/snapshot_guard.h"

namespace penstock::control_plane {
namespace {

using Kind = SnapshotVerdict::Kind;

constexpr const char* kTakeOver =
    "; if that head is to be followed from now on, start it with `penstock head --take-over`";

std::string older(const char* what, std::uint64_t came, std::uint64_t held) {
  return std::string("its ") + what + " " + std::to_string(came) + " is older than " +
         std::to_string(held) + ", which is in force" + kTakeOver;
}

SnapshotVerdict refuse(std::string why) { return {Kind::kRefuse, std::move(why)}; }

}  // namespace

SnapshotVerdict check_snapshot(const AcceptedSnapshot& held,
                               const penstock::v1::RouteSnapshot& snapshot) {
  if (held.version == 0) return {};
  const auto& stamp = snapshot.stamp();
  const bool stamped = !held.stamp.cluster_id().empty();
  if (stamped && stamp.cluster_id() != held.stamp.cluster_id()) {
    return refuse("it is of cluster '" + stamp.cluster_id() + "', and this gateway serves '" +
                  held.stamp.cluster_id() +
                  "'; to serve another cluster, start it without its kept snapshot");
  }
  if (stamped && stamp.epoch() != held.stamp.epoch()) {
    if (stamp.epoch() > held.stamp.epoch()) return {};
    return refuse(older("epoch", stamp.epoch(), held.stamp.epoch()));
  }
  if (stamped && stamp.revision() < held.stamp.revision()) {
    return refuse(older("revision", stamp.revision(), held.stamp.revision()));
  }
  if (snapshot.version() < held.version) {
    return refuse(older("version", snapshot.version(), held.version));
  }
  const bool same = snapshot.version() == held.version &&
                    stamp.cluster_id() == held.stamp.cluster_id() &&
                    stamp.revision() == held.stamp.revision();
  return {same ? Kind::kKnown : Kind::kAccept, {}};
}

}  // namespace penstock::control_plane
