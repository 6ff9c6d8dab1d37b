// What a policy chooses among, for one request: the replicas that may be called now, less those
// that the request may not use. Lives for one choice.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "routing/hashing.h"
#include "routing/looks.h"
#include "routing/preferences.h"
#include "routing/replica_list.h"
#include "routing/revisions.h"
#include "routing/traits.h"

namespace penstock::routing {

class Candidates {
 public:
  // What else narrows the choice.
  struct Filter {
    std::vector<const Replica*> excluded;
    Looks* looks;                          // where those that are looked at are noted
    const Revisions* revisions = nullptr;  // null: of whatever revision
    Revisions::Wish wish = {};
  };
  struct Totals {
    std::uint32_t sound = 0;  // replicas that nothing speaks against
    std::uint64_t load = 0;   // calls on these
  };
  Candidates(const ReplicaList& pool, const Preferences& preferences, const Totals& totals,
             const Traits& traits, const Filter& filter, Random& random)
      : pool_(pool),
        preferences_(preferences),
        totals_(totals),
        traits_(traits),
        filter_(filter),
        random_(random) {}

  const ReplicaList& pool() const { return pool_; }
  const Preferences& preferences() const { return preferences_; }
  const Traits& traits() const { return traits_; }
  Random& random() const { return random_; }
  Looks& looks() const { return *filter_.looks; }

  // Whether it may be chosen for this request. For replicas of the pool and for others.
  bool allows(const Replica& replica) const {
    filter_.looks->add(replica);
    return replica.standing().callable && !is_excluded(replica);
  }
  bool is_excluded(const Replica& replica) const;

  // Whether it may take one more call without having more than `factor` times the mean of all, or
  // more than that share of its places; less where it starts slowly.
  bool is_within(const Replica& replica, double factor, double share = kEasyShare) const;
  // So much may be in use whatever the others have: there is no one to spare.
  static constexpr double kEasyShare = 0.125;

  Preferences::Few preferred() const { return preferences_.few(*this, random_); }
  // For the sake of the request's adapter alone.
  Preferences::Few for_adapter() const { return preferences_.for_adapter(*this, random_); }

 private:
  const ReplicaList& pool_;
  const Preferences& preferences_;
  const Totals& totals_;
  const Traits& traits_;
  const Filter& filter_;
  Random& random_;
};

}  // namespace penstock::routing
