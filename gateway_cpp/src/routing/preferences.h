// Which replicas a request would rather have: those that hold its adapter, then the one that is to
// load it; without an adapter, or where all hold it, those on this gateway's node, then in its
// zone. Never a requirement, and never at the price of a load far above the others'. Costs the same
// for any number of replicas: of a large group a few are looked at.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "routing/adapter_slots.h"
#include "routing/hashing.h"
#include "routing/replica.h"

namespace penstock::routing {

class Candidates;

class Preferences {
 public:
  static constexpr std::size_t kLookedAt = 8;  // of one group

  // A few replicas that are preferred for the request, all equally; empty: any will do.
  struct Few {
    Replica* replicas[kLookedAt];
    std::size_t count = 0;
    std::span<Replica* const> all() const { return {replicas, count}; }
  };
  Few few(const Candidates& candidates, Random& random) const;
  // For the sake of its adapter alone.
  Few for_adapter(const Candidates& candidates, Random& random) const;

  // All that hold it, whether or not they may be called.
  std::span<Replica* const> holders(std::string_view adapter) const;

  // The set's replica is new here, or what it holds and where it is changed. `slots`: adapters that
  // it can hold; 0: it takes none.
  void learn(Replica& replica, std::span<const std::string> adapters, std::uint32_t slots);
  void forget(Replica& replica);

 private:
  using Group = std::vector<Replica*>;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return hash_text(text); }
  };

  std::unordered_map<std::string, Group, Hash, std::equal_to<>> holders_;
  std::unordered_map<const Replica*, std::vector<std::string>>
      known_;  // by which it is in holders_
  AdapterSlots slots_;
  Group on_node_;
  Group in_zone_;  // those on the node included
};

}  // namespace penstock::routing
