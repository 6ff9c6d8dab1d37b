// Where calls come in and whom they go to: every running call of the process by its key, the
// replica's state, and the handler that answers. Owned by the server; any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "call.h"
#include "penstock/v1/common.pb.h"
#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class Switchboard {
 public:
  // Calls that may run or wait here at once. Gateways send a replica what it has room for; this is
  // the end of trust, not a queue length.
  static constexpr size_t kMaxCalls = 16384;

  explicit Switchboard(std::shared_ptr<CallHandler> handler);

  // Only before the replica is ready.
  void set_handler(std::shared_ptr<CallHandler> handler);
  void set_state(v1::ReplicaState state) { state_ = state; }
  v1::ReplicaState state() const { return state_; }

  // A call as it arrived; not started yet.
  CallPtr make(uint64_t call_id, uint64_t credit_bytes, std::shared_ptr<Outlet> outlet);
  // Starts the calls, or fails them when the replica takes none.
  void start(std::span<const CallPtr> calls);
  // The client is gone, or wants no more. Holds even when it overtakes `start`.
  void cancel(const CallPtr& call);
  void room(std::span<const CallPtr> calls);
  // The call's last event is on its way.
  void ended(std::span<const CallPtr> calls);

  CallPtr find(uint64_t key) const;
  size_t running() const;
  // Ends every running call with this error; those that the engine never got may be retried.
  void fail_all(const v1::ErrorDetail& error);

 private:
  enum class Admission { kStart, kRefuse, kCancelled };
  Admission admit(const CallPtr& call);
  void hand_over(std::span<const CallPtr> calls);
  std::shared_ptr<CallHandler> handler() const;

  mutable std::mutex mutex_;
  std::shared_ptr<CallHandler> handler_;
  std::unordered_map<uint64_t, CallPtr> calls_;
  std::atomic<uint64_t> next_key_{1};
  std::atomic<v1::ReplicaState> state_{v1::REPLICA_STATE_STARTING};
};

}  // namespace penstock::replica
