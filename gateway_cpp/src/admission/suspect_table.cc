#include "admission/suspect_table.h"

#include <algorithm>

namespace penstock::admission {
namespace {

constexpr unsigned kTooMany = 4;  // points
constexpr std::chrono::seconds kSameDeath{10};
constexpr std::chrono::minutes kTogether{10};  // what is further apart is chance

unsigned points_of(EngineEnd end) { return end == EngineEnd::kCrashed ? 2 : 1; }

// Of deaths in their order.
unsigned points_of(const std::vector<EngineDeath>& deaths) {
  unsigned points = 0;
  for (const EngineDeath& death : deaths) {
    if (points == 0 || !death.shared) points += points_of(death.end);
  }
  return points;
}

bool was_before(const EngineDeath& death, base::WallTime answered) {
  return answered != base::WallTime{} && death.at <= answered;
}

bool is_after_another(const std::vector<EngineDeath>& deaths, const EngineDeath& death) {
  return std::any_of(deaths.begin(), deaths.end(), [&death](const EngineDeath& other) {
    return other.at <= death.at && !same_death(other, death);
  });
}

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
  const auto answered = std::max(entry.suspect.answered, found.answered);
  entry.suspect = found;
  entry.suspect.deaths.clear();
  entry.suspect.until = until;
  entry.suspect.answered = answered;
  for (const EngineDeath& death : found.deaths) {
    if (find(entry, death) != nullptr) continue;
    entry.own.push_back(death);
    note_shared(found.fingerprint, entry, death);
  }
}

EngineDeath* SuspectTable::find(Entry& entry, const EngineDeath& death) {
  for (auto* deaths : {&entry.own, &entry.shown}) {
    for (EngineDeath& known : *deaths) {
      if (same_death(known, death)) return &known;
    }
  }
  return nullptr;
}

// Two that were suspects before were aboard when this engine died: neither is proved to have done
// it. Only a suspect's later deaths are worth looking through all others.
void SuspectTable::note_shared(const Fingerprint& fingerprint, Entry& entry,
                               const EngineDeath& death) {
  if (!is_after_another(counted(entry), death)) return;
  for (auto& [other, with] : entries_) {
    EngineDeath* same = other == fingerprint ? nullptr : find(with, death);
    if (same == nullptr || !is_after_another(counted(with), *same)) continue;
    same->shared = true;
    find(entry, death)->shared = true;
  }
}

// Those that it is judged by, in their order.
std::vector<EngineDeath> SuspectTable::counted(const Entry& entry) {
  std::vector<EngineDeath> deaths = entry.shown;
  deaths.insert(deaths.end(), entry.own.begin(), entry.own.end());
  std::stable_sort(
      deaths.begin(), deaths.end(),
      [](const EngineDeath& one, const EngineDeath& other) { return one.at < other.at; });
  if (deaths.empty()) return deaths;
  const auto since = deaths.back().at - kTogether;
  std::erase_if(deaths, [&](const EngineDeath& death) {
    return was_before(death, entry.suspect.answered) || death.at < since;
  });
  return deaths;
}

void SuspectTable::make_room() {
  if (entries_.size() < kMost) return;
  entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
    return a.second.suspect.until < b.second.suspect.until;
  }));
}

void SuspectTable::merge(const std::vector<Suspect>& shown) {
  for (auto& [fingerprint, entry] : entries_) {
    entry.shown.clear();
    entry.shown_answered = {};
  }
  for (const Suspect& suspect : shown) {
    Entry& entry = entries_[suspect.fingerprint];
    const auto answered = std::max(entry.suspect.answered, suspect.answered);
    entry.shown = suspect.deaths;
    entry.shown_answered = suspect.answered;
    std::erase_if(entry.own, [&](const EngineDeath& own) {
      return was_before(own, answered) || knows(entry.shown, own);
    });
    entry.suspect = suspect;
    entry.suspect.deaths.clear();
    entry.suspect.answered = answered;
  }
  std::erase_if(entries_, [](const auto& item) {
    return item.second.shown.empty() && !is_news(item.second);
  });
}

bool SuspectTable::clear(const Fingerprint& fingerprint, base::WallTime now) {
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  const auto deaths = counted(entry);
  if (deaths.empty()) return false;
  // What it is known to have survived, whichever clock told of that.
  entry.suspect.answered = std::max(now, deaths.back().at);
  entry.own.clear();
  return true;
}

void SuspectTable::forget_old(base::WallTime now) {
  std::erase_if(entries_, [now](const auto& item) { return item.second.suspect.until <= now; });
}

Suspicion SuspectTable::suspicion(const Fingerprint& fingerprint, base::WallTime now) const {
  const auto found = entries_.find(fingerprint);
  if (found == entries_.end()) return Suspicion::kClear;
  if (found->second.suspect.until <= now) return Suspicion::kClear;
  const unsigned points = points_of(counted(found->second));
  if (points >= kTooMany) return Suspicion::kQuarantined;
  return points == 0 ? Suspicion::kClear : Suspicion::kSuspect;
}

base::WallTime SuspectTable::until(const Fingerprint& fingerprint) const {
  const auto found = entries_.find(fingerprint);
  return found == entries_.end() ? base::WallTime{} : found->second.suspect.until;
}

bool SuspectTable::is_news(const Entry& entry) {
  return !entry.own.empty() || entry.suspect.answered > entry.shown_answered;
}

std::vector<Suspect> SuspectTable::unshown() const {
  std::vector<Suspect> suspects;
  for (const auto& [fingerprint, entry] : entries_) {
    if (!is_news(entry)) continue;
    suspects.push_back(entry.suspect);
    suspects.back().deaths = entry.own;
  }
  return suspects;
}

}  // namespace penstock::admission
