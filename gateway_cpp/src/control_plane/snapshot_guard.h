// Whether a snapshot may replace the one in force. Pure: a head with another store, an older one or
// a restored one must not roll the routes back.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

// The newest snapshot that was accepted, from the head or from disk.
struct AcceptedSnapshot {
  penstock::v1::ClusterStamp stamp;  // without a cluster: it carried none
  std::uint64_t version = 0;         // 0: there is none yet
};

struct SnapshotVerdict {
  enum class Kind : std::uint8_t {
    kAccept,
    kKnown,  // the very one in force
    kRefuse,
  };
  Kind kind = Kind::kAccept;
  std::string why;  // it is refused, and what to do
};

SnapshotVerdict check_snapshot(const AcceptedSnapshot& held,
                               const penstock::v1::RouteSnapshot& snapshot);

}  // namespace penstock::control_plane
