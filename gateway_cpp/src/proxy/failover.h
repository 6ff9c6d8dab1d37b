// Which upstream next, as long as the client has seen nothing of an answer. A pure decision over
// what was tried so far; one for each request.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "admission/suspect_table.h"
#include "routing/route_snapshot.h"
#include "routing/traits.h"
#include "upstream/call.h"

namespace penstock::proxy {

enum class Next : uint8_t { kTryAnother, kGiveUp };

class Failover {
 public:
  static constexpr unsigned kMaxAttempts = 3;  // with one deployment
  // A request that was on board when so many replicas died may be what kills them.
  static constexpr unsigned kMaxDeaths = 2;

  // The request goes to `replica`: it is never asked again.
  void sent_to(const routing::ReplicaId& replica) { tried_.push_back(replica); }
  // It was called back from the last one before that had answered: it may go there again.
  void recalled() { tried_.pop_back(); }
  // It goes on to another deployment: nobody there has had it yet.
  void elsewhere();
  // It broke at the last one, and goes on: there, too, once that one is back.
  void goes_on();
  // The last one it was sent to has failed; `has_engine`: it has one that a request could kill.
  Next after(const upstream::CallFailure& failure, bool has_engine = true);

  std::span<const routing::ReplicaId> tried() const { return tried_; }
  // Of these, those where its answer broke.
  std::span<const routing::ReplicaId> broken() const { return {tried_.data(), broken_}; }
  // And the others: they would not have it.
  std::span<const routing::ReplicaId> refused() const { return std::span(tried_).subspan(broken_); }
  // Another may be tried.
  bool is_left() const { return tried_.size() - broken_ < kMaxAttempts; }
  // Of the deployment's replicas, with the request on board. One that was just lost is chance; when
  // an engine died, or two were lost, the request is a suspect.
  const std::vector<admission::EngineDeath>& deaths() const { return deaths_; }
  // Of these, those that crashed.
  unsigned crashes() const;
  // So many died with it, of all deployments, that it is no chance.
  bool is_deadly() const { return deaths_elsewhere_ + deaths_.size() >= kMaxDeaths; }
  // With all deployments.
  unsigned attempts() const { return elsewhere_ + static_cast<unsigned>(tried_.size()); }
  // A replica that it was sent to may have seen it: what it failed with there says more than that
  // no other one is left.
  bool reached_any() const { return reached_any_; }

 private:
  std::vector<routing::ReplicaId> tried_;
  uint32_t broken_ = 0;     // of these, from the first on, where its answer broke
  unsigned elsewhere_ = 0;  // attempts with other deployments, and those that helped no answer on
  std::vector<admission::EngineDeath> deaths_;
  unsigned deaths_elsewhere_ = 0;
  bool reached_any_ = false;
};

// The replica's engine died or hung.
bool engine_died(const upstream::CallFailure& failure);
// How, as the replica that was there said; of one that is gone nobody knows.
admission::EngineEnd end_of(const upstream::CallFailure& failure);
// And it had the call. Such a call goes to no other replica: it may be what kills them.
bool engine_died_with(const upstream::CallFailure& failure);

// Whether the request may be tried on another replica, as far as the failure goes.
bool may_retry(const upstream::CallFailure& failure);

// What a failure says against the replica; nothing if it is the request's fault, or the replica
// only has no room, goes away or cannot load the adapter.
std::optional<routing::Failure> blame_of(const upstream::CallFailure& failure);

}  // namespace penstock::proxy
