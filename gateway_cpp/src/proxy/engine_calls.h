// What a router program has engines do for one request, as the gateway does it: at replicas that it
// was told of, with the prompt that stays here, for so long, and with places of its own. What is
// left of it when it goes is cancelled and released. The request's I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dispatch/dispatcher.h"
#include "proxy/decision.h"
#include "proxy/engine_leg.h"
#include "proxy/parts.h"
#include "runtime/body_budget.h"
#include "runtime/signal.h"
#include "upstream/call_request.h"

namespace penstock::proxy {

// Whose request engines work for; all of it outlives the calls.
struct EngineErrand {
  const ThreadParts& parts;
  runtime::Signal& news;
  std::string uid;         // of the deployment
  std::string deployment;  // its name
  routing::Program program;
  std::shared_ptr<dispatch::Dispatcher> dispatcher;
  std::vector<dispatch::Engine> engines;  // that it may use
  routing::ReplicaId own;                 // where the request has its place
  upstream::CallRequest request;          // to be generated, without its body
  std::function<std::string_view()> body;
  // What a copy of it holds of the budget for bodies; nothing: there is no room for one.
  std::function<std::optional<runtime::BodyShare>()> room;
};

struct LegDeath {
  routing::ReplicaId replica;
  upstream::CallFailure failure;
};

// What engines have done at a replica: tokens that came whole, and the last lease that was
// released.
struct Left {
  uint32_t moved_tokens = 0;
  std::string lease{};  // as the replica knows it
};

class EngineCalls {
 public:
  explicit EngineCalls(EngineErrand errand) : errand_(std::move(errand)) {}
  EngineCalls(const EngineCalls&) = delete;
  EngineCalls& operator=(const EngineCalls&) = delete;
  ~EngineCalls() { clear({}); }

  void begin(const v1::EngineCall& wanted);
  // Takes up what has come. What is over has a reply in replies().
  void advance();
  // Those that the program has not heard of yet, to be taken.
  std::deque<v1::EngineReply>& replies() { return replies_; }
  bool any_run() const { return !legs_.empty(); }

  // The one of that id; null: it was not told of any.
  const dispatch::Engine* engine(std::string_view replica_id) const;
  // Null: none. By the program's own name.
  const Lease* lease(const std::string& seq_id) const;
  // As replicas know the lease.
  std::string name_of_lease(std::string_view seq_id) const;
  // For a request that goes there without a lease: its replica knows how much came by the one that
  // was released. Texts are these calls' own.
  upstream::KvHint left_at(std::string_view replica_id) const;
  // An engine has died with the prompt aboard; null: none has.
  const LegDeath* death() const { return death_ ? &*death_ : nullptr; }
  // What has run, the last of it.
  const std::vector<LegRecord>& told() const { return told_; }

  runtime::Signal& news() const { return errand_.news; }
  // Nothing goes on, and no lease but this one stays.
  void clear(const std::string& but);
  void release(const std::string& seq_id);
  // It ends by itself.
  void forget(const std::string& seq_id) { leases_.erase(seq_id); }

 private:
  using Legs = std::vector<std::unique_ptr<EngineLeg>>;

  static const EngineLeg::Replica& seat_of(const EngineLeg& leg);
  // Why it is not done; empty: it may be.
  std::string refuses(EngineLeg& leg);
  std::string refuses_seat(EngineLeg& leg, const dispatch::Engine* engine) const;
  bool is_preparing(const std::string& seq_id) const;
  void keep_lease(const EngineLeg& leg);
  std::string find_lease(EngineLeg& leg) const;
  std::string find_pair(EngineLeg& leg) const;
  std::string take_places(EngineLeg& leg) const;
  std::string take_place(EngineLeg& leg, const routing::Replica& at) const;

  void start_prompt(const EngineLeg& first);
  void start_step(EngineLeg& leg);
  void look_at(EngineLeg& leg, base::SteadyTime now);
  void end_step(EngineLeg& leg);
  bool read_step(EngineLeg& leg);
  bool read_tokenized(EngineLeg& leg);
  void note_moved(const EngineLeg& leg);
  void fail(EngineLeg& leg, std::string cause, std::string_view detail);
  void end(EngineLeg& leg);
  void note_end(const EngineLeg& leg);
  void note_failure(const EngineLeg& leg);
  void reap();

  // `share`: what the message holds of the budget for bodies, until it has gone.
  void open(EngineLeg& leg, const EngineLeg::Replica& at, const google::protobuf::Message& message,
            runtime::BodyShare share = {});

  const EngineErrand errand_;
  Legs legs_;
  std::deque<v1::EngineReply> replies_;
  std::map<std::string, Lease> leases_;            // by the program's own names
  std::map<std::string, Left, std::less<>> left_;  // by replica
  std::optional<v1::TokenizeReply> prompt_;
  bool tokenizes_ = false;    // a leg of ours is under way for it
  std::string prompt_fault_;  // why there is none
  std::optional<LegDeath> death_;
  std::vector<LegRecord> told_;
};

}  // namespace penstock::proxy
