#include "admission/program_book.h"

#include <algorithm>

#include "base/printable.h"

namespace penstock::admission {
namespace {

constexpr std::size_t kShownBytes = 200;  // of what a program says
constexpr std::array<std::string_view, kProgramOutcomes> kNames = {
    "decided",  "own_policy", "no_place",        "slow",     "raised",
    "nonsense", "dead",       "unknown_program", "abandoned"};

// One line of printable text: it is shown to people, and reported as UTF-8.
std::string line_of(std::string_view text) {
  std::string line(text.substr(0, kShownBytes));
  std::ranges::replace_if(
      line, [](char c) { return !base::is_printable(c); }, '?');
  return line;
}

}  // namespace

std::string_view name(ProgramOutcome outcome) { return kNames[static_cast<std::size_t>(outcome)]; }

bool is_fault(ProgramOutcome outcome) {
  return outcome >= ProgramOutcome::kSlow && outcome <= ProgramOutcome::kUnknownProgram;
}

ProgramOutcome fault_named(std::string_view text) {
  for (const auto fault : {ProgramOutcome::kRaised, ProgramOutcome::kUnknownProgram}) {
    if (text == name(fault)) return fault;
  }
  return ProgramOutcome::kNonsense;
}

bool ProgramBook::ask(const std::string& uid, const std::string& deployment,
                      const std::string& digest, base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[uid];
  if (entry.row.digest != digest) {  // another one has not failed yet
    entry.faults = 0;
    entry.paused_until = {};
    entry.row.digest = digest;
    entry.row.deployment = deployment;
  }
  if (now < entry.paused_until) return false;
  ++entry.row.asked;
  return true;
}

bool ProgramBook::ended(const std::string& uid, ProgramOutcome outcome, std::string_view detail,
                        base::SteadyTime now) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[uid];
  ++entry.row.counts[static_cast<std::size_t>(outcome)];
  if (!detail.empty()) entry.row.last[static_cast<std::size_t>(outcome)] = line_of(detail);
  if (outcome == ProgramOutcome::kAbandoned) return false;
  entry.faults = is_fault(outcome) ? entry.faults + 1 : 0;
  if (entry.faults < kFaults) return false;
  entry.faults = 0;
  entry.paused_until = now + kPause;
  entry.row.paused_by = name(outcome);
  return true;
}

void ProgramBook::moved(const std::string& uid, std::uint64_t tokens, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[uid];
  entry.row.moved_tokens += tokens;
  entry.row.moved_bytes += bytes;
}

ProgramRow ProgramBook::shown(const Entry& entry, base::SteadyTime now) {
  ProgramRow row = entry.row;
  if (now >= entry.paused_until) row.paused_by.clear();
  return row;
}

ProgramRow ProgramBook::row(const std::string& uid, base::SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(uid);
  return found == entries_.end() ? ProgramRow{} : shown(found->second, now);
}

std::vector<ProgramRow> ProgramBook::rows(base::SteadyTime now) const {
  std::vector<ProgramRow> rows;
  const std::lock_guard lock(mutex_);
  for (const auto& [uid, entry] : entries_) rows.push_back(shown(entry, now));
  return rows;
}

void ProgramBook::keep_only(const std::function<bool(const std::string& deployment)>& stays) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) { return !stays(entry.second.row.deployment); });
}

}  // namespace penstock::admission
