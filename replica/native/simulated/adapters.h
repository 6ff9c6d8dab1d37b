// The adapters that a simulated engine holds, who uses them, and the calls that wait for others.
// Guarded by the engine's mutex.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "call.h"
#include "simulated/request.h"
#include "simulated/timing.h"

namespace penstock::replica::simulated {

// An adapter by its name and by the bytes that are meant.
struct AdapterId {
  std::string name;    // "name@version"
  std::string digest;  // of its content
  auto operator<=>(const AdapterId&) const = default;
};

// How much an adapter is used.
struct AdapterUse {
  std::string name;
  uint32_t calls;  // now
  Time since;      // its last call began or ended
};

class Adapters {
 public:
  // A call whose adapter has to be loaded first.
  struct Parked {
    CallPtr call;
    Ask ask;
  };

  void add(const AdapterId& id, Time now);
  // False where calls use it. Removing what is not held succeeds.
  bool remove(const std::string& name);
  // The digest of what is held under this name; null: nothing.
  const std::string* digest_of(const std::string& name) const;

  // No call begins with the adapter until it is opened again, or was away.
  void close(const std::string& name);
  void reopen(const std::string& name);

  // A call begins with the adapter. False where it is not held with these bytes, or closed.
  bool enter(const AdapterId& id, Time now);
  // A call with it has ended. True where somebody asked to be told that it is idle now.
  bool leave(const std::string& name, Time now);
  std::vector<AdapterUse> uses(Time now) const;
  // `leave` tells once when the first of these is idle. True: one of them is already.
  bool tell_when_idle(std::set<std::string> names);

  // Whether the adapter is to be asked for: always, but by a call that waits for room as others do.
  bool park(const AdapterId& id, Parked parked);
  // Whether the call waited.
  bool unpark(const CallPtr& call);
  // Those that wait for the adapter, no longer; all of them, or those that do not wait for room.
  std::vector<Parked> take_parked(const AdapterId& id, bool all = true);

 private:
  struct Held {
    std::string digest;
    uint32_t calls = 0;
    Time used{0};
    bool closed = false;
  };

  std::map<std::string, Held> held_;
  std::map<AdapterId, std::map<uint64_t, Parked>> parked_;  // by the call's key
  std::set<std::string> awaited_;
};

}  // namespace penstock::replica::simulated
