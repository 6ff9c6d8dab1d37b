// Where calls come in and whom they go to: every running call of the process by its key, the
// replica's state, and the handler that answers. Owned by the server; any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "call.h"
#include "gateways.h"
#include "penstock/v1/common.pb.h"
#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class Switchboard {
 public:
  // Calls that may run or wait here at once. Gateways send a replica what it has room for; this is
  // the end of trust, not a queue length.
  static constexpr size_t kMaxCalls = 16384;

  // `changed`: told from any thread when calls or the engine's figures changed.
  explicit Switchboard(
      std::shared_ptr<CallHandler> handler, std::function<void()> changed = [] {});

  // Only before the replica is ready.
  void set_handler(std::shared_ptr<CallHandler> handler);
  // The handler, which may live on, tells of no more changes.
  void unwatch() {
    handler()->watch([] {});
  }
  void set_state(v1::ReplicaState state) { state_ = state; }
  v1::ReplicaState state() const { return state_; }

  // The gateway that a session says to be of; empty: one of its own.
  std::shared_ptr<Gateway> gateway(const std::string& id);
  // A call as it arrived; not started yet.
  CallPtr make(uint64_t call_id, uint64_t credit_bytes, std::shared_ptr<Outlet> outlet,
               std::shared_ptr<Gateway> gateway = nullptr);
  // Starts the calls, or fails them when the replica takes none.
  void start(std::span<const CallPtr> calls);
  // The client wants no more: it is told Cancelled once the handler has stopped. Holds even when it
  // overtakes `start`.
  void cancel(const CallPtr& call);
  // The client is gone: as `cancel`, and nobody is told.
  void abandon(const CallPtr& call);
  void room(std::span<const CallPtr> calls);
  // The call's last event is on its way.
  void ended(std::span<const CallPtr> calls);

  CallPtr find(uint64_t key) const;
  size_t running() const;
  // Fills in what the handler knows.
  void tell_figures(v1::Load* load) const;
  // Fills in the calls as this gateway is told of them, or a tool (null).
  void tell_calls(const Gateway* to, v1::Load* load);
  // Ends every running call with this error; those that the engine never got may be retried.
  void fail_all(const v1::ErrorDetail& error);

 private:
  enum class Admission { kStart, kRefuse, kCancelled };
  Admission admit(const CallPtr& call);
  void hand_over(std::span<const CallPtr> calls);
  bool first_cancel(const CallPtr& call, bool over);
  void forget(const CallPtr& call);
  std::shared_ptr<CallHandler> handler() const;

  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::shared_ptr<CallHandler> handler_;
  std::unordered_map<uint64_t, CallPtr> calls_;
  Gateways gateways_;
  std::atomic<uint64_t> next_key_{1};
  std::atomic<v1::ReplicaState> state_{v1::REPLICA_STATE_STARTING};
};

}  // namespace penstock::replica
