// One call as it lives in the replica, and the two sides that it joins: the handler that answers it
// and the outlet that carries the answer away.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "penstock/v1/inference.pb.h"
#include "token_queue.h"

namespace penstock::replica {

struct Call;
using CallPtr = std::shared_ptr<Call>;
struct Gateway;

// Carries answers to their client: a session, a single call's stream, or this process itself.
// Owned by its calls and by the transport; outlives the transport and then swallows everything.
class Outlet {
 public:
  virtual ~Outlet() = default;
  // `call` has something to send. True if the caller has to `flush` when its batch is over; else
  // somebody else will. Any thread.
  virtual bool ready(const CallPtr& call) = 0;
  // Sends what is ready, unless a message is on its way already. Any thread; holds no lock of a
  // handler.
  virtual void flush() = 0;
};

// Fixed from start to end, apart from the answer, which is its own guard.
struct Call {
  Call(uint64_t call_key, uint64_t call_id, uint64_t credit_bytes)
      : key(call_key), id(call_id), answer(credit_bytes) {}

  const uint64_t key;  // unique in this process
  const uint64_t id;   // the client's, unique on its session; 0: not on a session
  v1::CallRequest request;
  bool internal = false;             // a check of our own: neither queued nor counted
  std::shared_ptr<Gateway> gateway;  // whose it is; none: no gateway's
  // Guarded by the switchboard, which thus never starts a call after its cancel, and never cancels
  // one that the handler has not got yet.
  bool cancelled = false;
  bool handed_over = false;
  // The engine has it: what kills the engine may be this call's doing.
  std::atomic<bool> aboard{false};
  std::atomic<bool> for_python{false};  // though an engine of this process answers: SplitHandler
  std::shared_ptr<Outlet> outlet;
  TokenQueue answer;
};

// Answers calls: the simulated engine, or Python. Called on gRPC's threads: must not block.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void start(std::span<const CallPtr> calls) = 0;
  // Nobody wants more of it: stops, then pushes Cancelled with what it cost. Comes at most once for
  // a call, never before its start, perhaps after its end.
  virtual void cancel(const CallPtr& call) = 0;
  // These calls' queues were full, and have room again.
  virtual void room(std::span<const CallPtr> calls) = 0;
  // What the call has cost so far, where this side knows it.
  virtual v1::Usage cost(const CallPtr& /*call*/) { return {}; }
  // Fills in the figures of the engine, where this side knows them; `watch` says whom to tell that
  // they changed, from any thread and under any lock of the handler.
  virtual void tell_figures(v1::Load* /*load*/) const {}
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps it
  virtual void watch(std::function<void()> /*changed*/) {}
};

}  // namespace penstock::replica
