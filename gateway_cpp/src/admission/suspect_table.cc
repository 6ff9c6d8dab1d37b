#include "admission/suspect_table.h"

#include <algorithm>

namespace penstock::admission {
namespace {

constexpr std::size_t kTooMany = 2;  // deaths
constexpr std::chrono::seconds kSameDeath{10};

bool knows(const std::vector<EngineDeath>& deaths, const EngineDeath& death) {
  return std::any_of(deaths.begin(), deaths.end(),
                     [&death](const EngineDeath& known) { return same_death(known, death); });
}

}  // namespace

bool same_death(const EngineDeath& one, const EngineDeath& other) {
  return one.replica_id == other.replica_id && one.at - other.at <= kSameDeath &&
         other.at - one.at <= kSameDeath;
}

void SuspectTable::add(const Suspect& found) {
  if (!entries_.contains(found.fingerprint)) make_room();
  Entry& entry = entries_[found.fingerprint];
  const auto until = std::max(entry.suspect.until, found.until);
  entry.suspect = found;
  entry.suspect.deaths.clear();
  entry.suspect.until = until;
  for (const EngineDeath& death : found.deaths) {
    if (knows(entry.own, death) || knows(entry.shown, death)) continue;
    entry.own.push_back(death);
    entry.cleared = false;
  }
}

void SuspectTable::make_room() {
  if (entries_.size() < kMost) return;
  entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
    return a.second.suspect.until < b.second.suspect.until;
  }));
}

void SuspectTable::merge(const std::vector<Suspect>& shown) {
  for (auto& [fingerprint, entry] : entries_) entry.shown.clear();
  for (const Suspect& suspect : shown) {
    Entry& entry = entries_[suspect.fingerprint];
    const std::size_t before = entry.shown.size() + entry.own.size();
    entry.shown = suspect.deaths;
    std::erase_if(entry.own, [&](const EngineDeath& own) { return knows(entry.shown, own); });
    entry.cleared = entry.cleared && before >= entry.shown.size() + entry.own.size();
    entry.suspect = suspect;
    entry.suspect.deaths.clear();
  }
  std::erase_if(entries_, [](const auto& item) {
    return item.second.shown.empty() && item.second.own.empty();
  });
}

void SuspectTable::clear(const Fingerprint& fingerprint) {
  const auto found = entries_.find(fingerprint);
  if (found != entries_.end()) found->second.cleared = true;
}

void SuspectTable::forget_old(base::WallTime now) {
  std::erase_if(entries_, [now](const auto& item) { return item.second.suspect.until <= now; });
}

Standing SuspectTable::standing(const Fingerprint& fingerprint, base::WallTime now) const {
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return Standing::kClear;
  const Entry& entry = found->second;
  if (entry.suspect.until <= now) return Standing::kClear;
  if (entry.own.size() + entry.shown.size() >= kTooMany) return Standing::kQuarantined;
  return entry.cleared ? Standing::kClear : Standing::kSuspect;
}

base::WallTime SuspectTable::until(const Fingerprint& fingerprint) const {
  const auto found = entries_.find(fingerprint);
  return found == entries_.end() ? base::WallTime{} : found->second.suspect.until;
}

std::vector<Suspect> SuspectTable::unshown() const {
  std::vector<Suspect> suspects;
  for (const auto& [fingerprint, entry] : entries_) {
    if (entry.own.empty()) continue;
    suspects.push_back(entry.suspect);
    suspects.back().deaths = entry.own;
  }
  return suspects;
}

}  // namespace penstock::admission
