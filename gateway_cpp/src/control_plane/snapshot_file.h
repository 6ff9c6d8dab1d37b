// The last snapshot on disk, so that a gateway started without a head serves what it knew. One
// thread at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/log.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

class SnapshotFile {
 public:
  // DIR/snapshot-<gateway_id>.pb. An empty directory: nothing is kept.
  SnapshotFile(const std::string& directory, const std::string& gateway_id, base::Log& log);

  // Replaces the file in one step: a reader sees the old one or the new one. Nobody but its owner
  // can read it. A full disk is logged and otherwise ignored, since it must not stop the routes
  // from changing.
  void save(const penstock::v1::RouteSnapshot& snapshot);

  // Nothing if there is no file, or none that can be read (which is logged).
  std::optional<penstock::v1::RouteSnapshot> load();

 private:
  std::filesystem::path path_;
  base::Log& log_;
};

}  // namespace penstock::control_plane
