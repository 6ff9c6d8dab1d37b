// What came of asking router programs since the process began, by deployment, and which of them are
// left alone for a while because they fail. One for the process; any thread; a short lock for each
// call, which only requests of such deployments pay.
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
#include <vector>

#include "base/clock.h"

namespace penstock::admission {

// How an ask ended. All but the first go where the deployment's own policy has put them.
enum class ProgramOutcome : std::uint8_t {
  kDecided,         // it named a replica
  kLeft,            // it left it to the gateway
  kNoPlace,         // it named one that has no room
  kSlow,            // its time was over
  kRaised,          // an exception ended it
  kNonsense,        // it broke its word
  kDead,            // its process went, or was not reached
  kUnknownProgram,  // its process does not run it
  kAbandoned,       // the client left, or the request was called back
};
inline constexpr std::size_t kProgramOutcomes = 9;
std::string_view name(ProgramOutcome outcome);
// The program is to blame.
bool is_fault(ProgramOutcome outcome);
// "raised" and the like, as a program's process says it; anything else is nonsense.
ProgramOutcome fault_named(std::string_view text);

struct ProgramRow {
  std::string deployment;  // by name
  std::string digest;      // of the program that was asked last
  std::array<std::uint64_t, kProgramOutcomes> counts{};
  std::array<std::string, kProgramOutcomes> last{};  // what was said of it last, one line
  std::uint64_t asked = 0;
  std::uint64_t moved_tokens = 0;
  std::uint64_t moved_bytes = 0;
  std::string paused_by;  // the fault for which it is not asked now; empty: it is
};

class ProgramBook {
 public:
  static constexpr unsigned kFaults = 3;  // in a row, after which it is left alone
  static constexpr std::chrono::seconds kPause{10};

  // Counts one more ask, unless it is left alone. `uid`: of the deployment.
  bool ask(const std::string& uid, const std::string& deployment, const std::string& digest,
           base::SteadyTime now);
  // `detail`: what it said, foreign text of any length. True: it is left alone from now on.
  bool ended(const std::string& uid, ProgramOutcome outcome, std::string_view detail,
             base::SteadyTime now);
  void moved(const std::string& uid, std::uint64_t tokens, std::uint64_t bytes);

  ProgramRow row(const std::string& uid, base::SteadyTime now) const;  // empty: it was never asked
  std::vector<ProgramRow> rows(base::SteadyTime now) const;            // by uid
  // Of deployments that have left nothing is kept.
  void keep_only(const std::function<bool(const std::string& deployment)>& stays);

 private:
  struct Entry {
    ProgramRow row;
    unsigned faults = 0;  // in a row
    base::SteadyTime paused_until{};
  };
  static ProgramRow shown(const Entry& entry, base::SteadyTime now);

  mutable std::mutex mutex_;  // guards all below
  std::map<std::string, Entry> entries_;
};

}  // namespace penstock::admission
