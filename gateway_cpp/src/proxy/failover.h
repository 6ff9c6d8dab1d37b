// Which upstream next, as long as the client has seen nothing of an answer. A pure decision over
// what was tried so far; one for each request.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "routing/route_snapshot.h"
#include "upstream/call.h"

namespace penstock::proxy {

enum class Next : uint8_t { kTryAnother, kGiveUp };

class Failover {
 public:
  static constexpr unsigned kMaxAttempts = 3;
  // A request that was on board when so many replicas died may be what kills them.
  static constexpr unsigned kMaxDeaths = 2;

  // The request goes to `replica`: it is never asked again.
  void sent_to(const routing::ReplicaId& replica) { tried_.push_back(replica); }
  // The last one it was sent to has failed.
  Next after(const upstream::CallFailure& failure);

  std::span<const routing::ReplicaId> tried() const { return tried_; }
  unsigned attempts() const { return static_cast<unsigned>(tried_.size()); }

 private:
  std::vector<routing::ReplicaId> tried_;
  unsigned deaths_ = 0;
};

// Failures that say something about the replica and not about the request.
bool speaks_against_replica(const upstream::CallFailure& failure);

}  // namespace penstock::proxy
