// One question to a router program: where should this request go? Holds what the program has said
// of it and nobody has taken up yet: engine calls, then one decision. What the program says is
// foreign, whatever its order, number and sizes. Pure; the request's I/O thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "admission/program_book.h"
#include "base/clock.h"
#include "penstock/v1/router.pb.h"
#include "proxy/stage.h"

namespace penstock::proxy {

enum class Asked : uint8_t {
  kOpen,     // the program thinks, or waits for engines
  kDecided,  // it has said where
  kFailed,   // it will not: nothing that it says counts any more
};

inline constexpr Transitions<Asked> kRoutingQuestion{
    {Asked::kOpen, {Asked::kDecided, Asked::kFailed}},
    {Asked::kDecided, {Asked::kFailed}},  // for one that nobody may follow
};

class RoutingQuestion {
 public:
  static constexpr uint32_t kMostCalls = 64;  // of engines, for one request
  static constexpr size_t kMostWaiting = 16;  // of these, at a time
  static constexpr size_t kLongestSeqId = 64;

  // `own`: what the program may take for itself.
  RoutingQuestion(uint64_t id, base::SteadyTime now, std::chrono::nanoseconds own)
      : id_(id), own_left_(own), since_(now) {}

  uint64_t id() const { return id_; }
  Asked state() const { return state_.now(); }
  bool is_open() const { return state() == Asked::kOpen; }

  // ---- what the program says

  void take(const v1::EngineCall& call);
  void take(const v1::RouteDecision& decision);
  // It says nothing more, or nobody believes it.
  void fail(admission::ProgramOutcome why, std::string_view detail);

  // ---- what becomes of it

  // The next engine call that it wants; nothing: none.
  std::optional<v1::EngineCall> next_call();
  // Its time stands while engines work for it.
  void engines_work(bool work, base::SteadyTime now);
  // Its time is over at that; nothing: it stands.
  std::optional<base::SteadyTime> due() const;

  const v1::RouteDecision& decision() const { return decision_; }  // when decided
  admission::ProgramOutcome fault() const { return fault_; }       // when failed
  const std::string& detail() const { return detail_; }            // likewise

 private:
  const uint64_t id_;
  Stage<Asked, kRoutingQuestion> state_;
  uint32_t calls_ = 0;
  std::deque<v1::EngineCall> waiting_;
  v1::RouteDecision decision_;
  admission::ProgramOutcome fault_ = admission::ProgramOutcome::kNonsense;
  std::string detail_;
  std::chrono::nanoseconds own_left_;
  base::SteadyTime since_;  // it has the word; while `works_` it has not
  bool works_ = false;
};

}  // namespace penstock::proxy
