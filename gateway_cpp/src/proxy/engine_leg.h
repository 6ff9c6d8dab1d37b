// One engine call of a router program on its way: the calls of MicroServing that it is made of, one
// after the other, and what comes of them. What replicas answer is foreign.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "dispatch/leg_place.h"
#include "penstock/v1/microserving.pb.h"
#include "penstock/v1/router.pb.h"
#include "routing/replica.h"
#include "upstream/call.h"

namespace penstock::proxy {

// KV that is to come to a replica.
struct Lease {
  std::shared_ptr<routing::Replica> at;
  v1::KvAddress address;
  uint32_t end = 0;          // tokens
  bool is_prepared = false;  // its replica has given it
};

struct EngineLeg {
  using Replica = std::shared_ptr<routing::Replica>;
  enum class State : uint8_t {
    kWaits,  // for the prompt
    kRuns,   // its call is under way
    kOver,   // `reply` says what came of it
  };

  v1::EngineCall wanted;
  bool is_ours = false;               // the program did not ask for it and hears nothing of it
  std::vector<v1::EngineVerb> steps;  // that are left, the next one first
  Replica at;                         // where most of them are
  Replica to;                         // whose death ends what comes from there; null: nobody's
  std::vector<dispatch::LegPlace> places;
  base::SteadyTime begun;
  base::SteadyTime due;
  State state = State::kWaits;
  std::unique_ptr<upstream::Call> call;  // null: it waits, or is over
  std::string answer;                    // as far as it has come
  v1::EngineReply reply;

  v1::EngineVerb step() const { return steps.front(); }
};

struct VerbTraits {
  std::string_view name = {};  // "prep_recv"; empty: there is no such verb
  std::string_view path = {};  // of the method, as a call on a session names it; empty: it has none
  bool needs_prompt = false;
  bool needs_place = false;  // the engine works for it: it has a place there
};
const VerbTraits& traits_of(v1::EngineVerb verb);
// The calls that it is made of.
std::vector<v1::EngineVerb> steps_of(v1::EngineVerb verb);

// Why a call failed, in the words of EngineReply.
std::string cause_of(const upstream::CallFailure& failure);

// Reads what has come of the leg's call. False: it is more than any answer has.
bool take_answer(EngineLeg& leg);

// What a step has answered goes into the leg's reply. False: it makes no sense.
bool read_lookup(EngineLeg& leg);
bool read_prepared(EngineLeg& leg, Lease& lease);
bool read_sent(EngineLeg& leg);
bool read_committed(EngineLeg& leg);

}  // namespace penstock::proxy
