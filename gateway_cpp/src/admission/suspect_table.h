// Requests that were aboard engines when they died: who they are, what they may do, when they are
// forgotten. A pure table that one owner keeps; callers pass the time.
//
// What this gateway found out stays its own until a snapshot shows it; from then on the snapshot is
// right, and a suspect that it shows no more was released.
//
// Blame needs proof. A crash is two points against what was aboard; a kill, a hang and a replica
// that was lost, for which there are other reasons, are one; four are too many. The first death
// makes a request a suspect, which runs apart from others: from then on only deaths count that no
// other suspect shared. An answer takes all points away.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "admission/fingerprint.h"
#include "base/clock.h"

namespace penstock::admission {

enum class EngineEnd : std::uint8_t { kCrashed, kKilled, kHung, kLost };

struct EngineDeath {
  std::string replica_id;
  base::WallTime at = {};
  std::string gateway_id = {};  // who saw it
  EngineEnd end = EngineEnd::kCrashed;
  bool shared = false;  // another suspect was aboard
  bool operator==(const EngineDeath&) const = default;
};

// Two reports of one replica within ten seconds speak of the same death.
bool same_death(const EngineDeath& one, const EngineDeath& other);

struct Suspect {
  Fingerprint fingerprint;
  std::string deployment;  // name, for people
  std::string deployment_uid;
  std::string path;
  std::vector<EngineDeath> deaths;
  base::WallTime until;          // forgotten from then on
  base::WallTime answered = {};  // what died up to then was not its doing
  bool operator==(const Suspect&) const = default;
};

// How a request stands that may be a suspect, from good to bad.
enum class Suspicion : std::uint8_t {
  kClear,        // not known, or it has been answered since its engine died
  kSuspect,      // an engine died under it: it runs where no other suspect does
  kQuarantined,  // so many did that it is no chance: it is refused
};

class SuspectTable {
 public:
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }

  // Engines died under the request. One that is new comes into a full table in place of the one
  // that is forgotten first.
  void add(const Suspect& found);
  // What a snapshot shows, of all gateways.
  void merge(const std::vector<Suspect>& shown);
  // It was answered whole: no death so far was its doing. False: it was clear.
  bool clear(const Fingerprint& fingerprint, base::WallTime now);
  void forget_old(base::WallTime now);

  // Whose term is over is clear, whether it was forgotten yet or not.
  Suspicion suspicion(const Fingerprint& fingerprint, base::WallTime now) const;
  // When it is forgotten; meaningful for those that are known.
  base::WallTime until(const Fingerprint& fingerprint) const;
  // What no snapshot has shown yet.
  std::vector<Suspect> unshown() const;

 private:
  struct Entry {
    Suspect suspect;                  // without deaths
    std::vector<EngineDeath> own;     // that no snapshot has shown
    std::vector<EngineDeath> shown;   // by the last snapshot
    base::WallTime shown_answered{};  // by it
  };
  static constexpr std::size_t kMost = 4096;

  static std::vector<EngineDeath> counted(const Entry& entry);
  static bool is_news(const Entry& entry);
  static EngineDeath* find(Entry& entry, const EngineDeath& death);
  void make_room();
  void note_shared(const Fingerprint& fingerprint, Entry& entry, const EngineDeath& death);

  std::map<Fingerprint, Entry> entries_;
};

}  // namespace penstock::admission
