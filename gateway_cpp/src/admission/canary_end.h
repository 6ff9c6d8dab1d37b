// How a request of a canary ended, and what that says of its arm. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::admission {

// Why one arm did not answer a request.
enum class CanaryFault : std::uint8_t {
  kServerError,   // any other failure before the first event
  kBrokenStream,  // it ended after its first event, and is not whole
  kEngineDead,    // the engine died or hung with it, before its first event
  kNoPlace,       // no replica, or none with room, in time
  kRefused,       // a 4xx for what the request says
  kTimeout,       // no first event in time
  kNobodys,       // says nothing of an arm: the client's doing, its tenant's, or this gateway's
};
inline constexpr std::size_t kCanaryFaults = 6;  // that say something
std::string_view name(CanaryFault fault);        // as reports tell it: sorted

// What an error says; `begun`: the client has had the first event of the answer.
CanaryFault canary_fault(const base::Error& error, bool begun);

// Where a request of one arm has been, and how it ended.
class CanaryCourse {
 public:
  // It could not be answered where it was, and goes on: from the candidate to the stable arm, from
  // the stable arm down a ladder, from rung to rung.
  void left(const base::Error& why);
  // It ended with an error.
  void failed(const base::Error& why, bool begun);
  // It ended with a whole answer.
  void answered() { end_ = End::kAnswered; }

  enum class Verdict : std::uint8_t {
    kNothing,   // it says nothing of its arm
    kAnswered,  // by its own arm, whole
    kBad,
    kRefused,  // by all that its arm's requests may be asked of
  };
  struct Outcome {
    Verdict verdict = Verdict::kNothing;
    CanaryFault fault = CanaryFault::kNobodys;  // where it is bad
    bool saved = false;                         // the stable arm answered it instead, whole
    bool operator==(const Outcome&) const = default;
  };
  Outcome outcome(bool candidate) const;

 private:
  enum class End : std::uint8_t { kNothing, kAnswered, kFailed };

  // Of the n-th that was to answer it, from 0; nothing: that one has answered.
  std::optional<CanaryFault> fault_at(std::size_t n) const;
  Outcome of_candidate() const;

  // The candidate and the stable arm; rungs count for nothing.
  std::array<CanaryFault, 2> left_{};
  std::size_t departures_ = 0;
  End end_ = End::kNothing;
  CanaryFault failure_ = CanaryFault::kNobodys;
  bool begun_ = false;
};

// How whole answers end, sorted.
enum class CanaryFinish : std::uint8_t {
  kContentFilter,
  kEmpty,
  kFunctionCall,
  kLength,
  kOther,  // any word that is not here
  kStop,
  kToolCalls,
};
inline constexpr std::size_t kCanaryFinishes = 7;
std::string_view name(CanaryFinish finish);
// Cut at its length, filtered, or empty.
bool is_bad(CanaryFinish finish);

// What a replica said at the end of an answer.
struct CanaryWords {
  std::span<const std::string> finish_reasons;  // one for each choice; none: it has no such thing
  std::optional<std::uint32_t> completion_tokens = {};  // of all choices; nothing: it did not say
  bool counts_end = true;                               // the end of a text is one of its tokens
};

// Of several choices the first bad one; nothing: it has no such thing. Empty is one that stopped by
// itself with no more than the end of its text.
std::optional<CanaryFinish> canary_finish(const CanaryWords& words);

// A whole answer of the request's own arm.
struct CanaryAnswer {
  std::string_view replica;
  std::optional<CanaryFinish> finish = {};
  std::optional<std::chrono::nanoseconds> ttft = {};            // of a stream: the first event
  std::optional<std::chrono::nanoseconds> between_tokens = {};  // the mean from there on
  std::chrono::nanoseconds total{0};  // from the request read to the answer's end
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

}  // namespace penstock::admission
