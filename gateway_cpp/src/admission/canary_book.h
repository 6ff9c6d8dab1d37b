// What a gateway counts of canaries' two arms, by session. One for the process; any thread; a short
// lock for each call, which only requests of canaries pay.
//
// Bounded: of each rule the sessions of two generations are remembered, in 8 MiB at most; rules
// beyond the first kMostRules are not counted, which the head takes for a gateway that is silent.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "admission/canary_end.h"
#include "routing/prefix_table.h"
#include "routing/route_snapshot.h"

namespace penstock::admission {

// How long something took: bin i from 16 * 2^(i/8) microseconds on.
inline constexpr std::size_t kCanaryBins = 256;
using CanaryTimes = std::array<std::uint64_t, kCanaryBins>;
std::size_t canary_bin(std::chrono::nanoseconds time);

// As v1::CanaryArm.
struct CanaryCounts {
  std::uint64_t sessions = 0;
  std::uint64_t bad_sessions = 0;
  std::array<std::uint64_t, kCanaryFaults> errors{};
  std::uint64_t answered_sessions = 0;
  std::uint64_t bad_finishes = 0;
  CanaryTimes ttft{};
  CanaryTimes between_tokens{};
  CanaryTimes total{};
  std::uint64_t requests = 0;
  std::array<std::uint64_t, kCanaryFinishes> finishes{};
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t saved = 0;
  std::uint64_t saved_sessions = 0;
  std::uint64_t refused = 0;
  bool operator==(const CanaryCounts&) const = default;
};

struct CanaryRow {
  std::string uid;
  std::string name;
  std::uint32_t step = 0;
  CanaryCounts stable;
  CanaryCounts candidate;
};

class CanaryBook {
 public:
  static constexpr std::size_t kMostRules = 100;
  // Of each rule, of those that came last; at most twice as many.
  static constexpr std::size_t kSessions = 100'000;
  // Of each rule, whose first requests are told apart.
  static constexpr std::size_t kMostReplicas = 10'000;

  // `on_bad`: a session of a candidate has turned bad, which the head should hear soon.
  explicit CanaryBook(std::size_t sessions = kSessions, std::function<void()> on_bad = {})
      : sessions_(sessions), on_bad_(std::move(on_bad)) {}
  CanaryBook(const CanaryBook&) = delete;
  CanaryBook& operator=(const CanaryBook&) = delete;

  // Its rules are in force from now on: what was counted of others, and of other steps, is
  // forgotten. To be told of before any request is routed by it.
  void follow(const routing::RouteSnapshot& snapshot);

  // A request of the rule's arm has ended. One that began under another step counts for nothing.
  // `session`: its hash; `answer`: for a verdict of kAnswered.
  struct End {
    std::uint64_t session = 0;
    bool candidate = false;
    CanaryCourse::Outcome outcome;
    CanaryAnswer answer = {};
  };
  void ended(const routing::CanaryRule& rule, const End& end);

  std::vector<CanaryRow> rows() const;  // sorted by uid

 private:
  struct Entry {
    CanaryRow row;
    routing::PrefixTable sessions;  // what was counted of each
    // Whole answers of each replica, as far as they are not counted.
    std::unordered_map<std::string, std::uint32_t> warmups;
  };

  bool count(const routing::CanaryRule& rule, const End& end);
  void begin(Entry& entry, const routing::CanaryRule& rule) const;
  // Whether an answer of that replica counts among times; it is one more.
  static bool note_warm(Entry& entry, const routing::CanaryRule& rule, std::string_view replica);

  const std::size_t sessions_;
  const std::function<void()> on_bad_;
  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace penstock::admission
