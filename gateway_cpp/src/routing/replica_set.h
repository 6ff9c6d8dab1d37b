// The replicas of one deployment: which of them may be sent a call, how many calls they have, what
// speaks against them, and the choice among them. Not thread-safe: its owner guards it together
// with the queue before it. It has no clock: callers bring the time. Nothing a request does costs
// more with more replicas, but for the logarithm.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "routing/candidates.h"
#include "routing/hashing.h"
#include "routing/pick.h"
#include "routing/policy.h"
#include "routing/preferences.h"
#include "routing/replica.h"
#include "routing/replica_list.h"
#include "routing/revisions.h"
#include "routing/route_snapshot.h"
#include "routing/traits.h"

namespace penstock::routing {

class ReplicaSet {
 public:
  ReplicaSet(GatewayPlace place, std::uint64_t seed);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  // Takes up the deployment's replicas, limits and policy from a snapshot. A replica that keeps id
  // and address keeps its calls, load and doubts, also when it was away for a snapshot.
  void follow(const DeploymentRoute& route, std::span<const ReplicaRoute> replicas,
              base::SteadyTime now);

  // Chooses a replica and counts one call on it; null: nobody has room for it, or none of the
  // revision that it can wait for. `pick`: where a choice is told; null: nowhere.
  std::shared_ptr<Replica> reserve(const Traits& traits, base::SteadyTime now,
                                   Pick* pick = nullptr);
  // Counts one call on this one: null: it is not in the set, or has no room. What moves KV is no
  // answer to wait for.
  enum class What : std::uint8_t { kAnswer, kLeg };
  std::shared_ptr<Replica> reserve_at(const ReplicaId& id, What what, base::SteadyTime now);
  // Likewise, as the leg ends.
  void release_leg(Replica& replica, base::SteadyTime now);
  // The call has ended. Exactly once for each reserve(), also after the replica left the set.
  void release(Replica& replica, base::SteadyTime now);

  void report(Replica& replica, const LoadReport& load, base::SteadyTime now);
  // The doubt that the failure brought; 0: none.
  std::chrono::milliseconds note_failure(Replica& replica, Failure failure, base::SteadyTime now);
  // It answered a call whole.
  void note_success(Replica& replica, base::SteadyTime now);
  // The first message of a new load stream came: doubt of a lost process is over.
  void note_back(Replica& replica, base::SteadyTime now);

  // Time alone ends doubts and slow starts, opens probes and finds what makes no progress. True:
  // since the last call it may have made room.
  bool advance(base::SteadyTime now);
  // Whose time has come, by the routes, to hand its streams over.
  void look_for_leaving(base::WallTime now);
  // Grows when the word of a replica changes. Any thread, without the guard.
  std::uint64_t words() const { return words_.load(std::memory_order_acquire); }

  // Whether requests may have to go to replicas of one revision.
  bool minds_revisions() const { return revisions_.matter(); }
  // As Revisions has these.
  bool is_for(const std::string& digest, const Traits& traits) {
    return revisions_.is_for(digest, traits);
  }
  bool has_rest(std::span<const ReplicaId> excluded) const;
  // Whether a replica besides these is ready to go on with answers of that config, and nothing
  // speaks against it; or has room for one.
  bool is_ready_to_continue(std::uint32_t config, std::span<const ReplicaId> excluded) const;
  bool has_room_to_continue(std::uint32_t config, bool runs_on) const;
  // Grows when a replica that is_ready_to_continue() comes or goes.
  std::uint64_t equals_changes() const { return equals_changes_; }
  Counts counts() const;
  std::vector<Doubt> doubts(base::SteadyTime now) const;
  const Ejections& ejections() const { return ejections_; }
  // Null: not in the set.
  std::shared_ptr<Replica> find(const ReplicaId& id) const;
  std::span<const std::shared_ptr<Replica>> replicas() const { return members_; }
  // Whether a replica besides that one is ready and nothing speaks against it, or may be probed.
  bool another_is_usable(const ReplicaId& besides, base::SteadyTime now);
  // Whether a ready replica holds the adapter, or reports slots to load it into.
  bool is_ready_for(std::string_view adapter) const;

 private:
  struct Wake {
    base::SteadyTime at;
    std::shared_ptr<Replica> replica;
    bool operator>(const Wake& other) const { return at > other.at; }
  };
  using ById = std::unordered_map<std::string, Replica*>;
  using Address = std::pair<std::string, std::string>;  // id and address

  bool take_up(std::span<const ReplicaRoute> replicas);
  void follow_revision(Replica& replica);
  bool drop_unlisted(std::span<const ReplicaRoute> replicas, base::SteadyTime now);
  ById::iterator add(const ReplicaRoute& route);
  void remove(Replica& replica, base::SteadyTime now);
  void learn(Replica& replica);
  Nearness nearness(const ReplicaRoute& route) const;

  Replica* choose(const Traits& traits, Candidates::Filter& filter);
  void tell(const Replica& chosen, const Traits& traits, const Candidates::Filter& filter,
            Pick& pick) const;
  static Verdict verdict_on(const Replica& replica, const Traits& traits,
                            const Candidates::Filter& filter);
  Replica* choose_of_revision(const Traits& traits, Candidates::Filter& filter);
  Replica* choose_among(const Traits& traits, const Candidates::Filter& filter);
  Replica* choose_adapting(const Candidates& candidates);
  bool all_decoders_are_excluded(const Traits& traits, const Candidates::Filter& filter) const;
  std::shared_ptr<Replica> take(Replica& chosen, std::uint32_t continues, base::SteadyTime now);
  std::uint32_t config_number(const std::string& hash);
  std::vector<const Replica*> resolve(std::span<const ReplicaId> ids) const;
  std::uint32_t with_room() const;
  bool another_is_sound(const Replica& besides) const;

  // What time and events mean for the replica: suspicion, standing, sums, pools, the next wake.
  void touch(Replica& replica, base::SteadyTime now);
  void settle(Replica& replica, base::SteadyTime now);
  void count_decoder(int more, base::SteadyTime now);
  void schedule(Replica& replica, base::SteadyTime now);
  void wake(base::SteadyTime now);
  void note_ejection(std::string_view reason);
  void say(Replica& replica);

  const GatewayPlace place_;
  Random random_;
  Limits limits_;
  std::string policy_name_;
  std::unique_ptr<Policy> policy_;
  bool followed_ = false;  // those of the first snapshot are warm: others have used them

  std::vector<std::shared_ptr<Replica>> members_;
  ById by_id_;
  std::map<Address, std::weak_ptr<Replica>> departed_;  // with calls under way
  std::uint32_t serials_ = 0;

  ReplicaList callable_{ReplicaList::Slot::kCallable};
  ReplicaList spare_{ReplicaList::Slot::kSpare};
  ReplicaList adapting_{ReplicaList::Slot::kAdapting};
  ReplicaList kept_{ReplicaList::Slot::kKept};
  Preferences preferences_;
  Revisions revisions_;
  Counts counts_;
  std::uint32_t decoders_ = 0;  // sound replicas whose role is to decode
  std::uint32_t slotted_ = 0;   // that report slots for adapters, of the ready ones
  Candidates::Totals totals_;
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  Ejections ejections_{};
  bool opened_ = false;               // time made room since advance() said so
  std::vector<std::string> configs_;  // [number - 1]: config_hash
  std::uint64_t equals_changes_ = 0;
  base::WallTime next_leaving_{};  // when it is to be looked for
  std::atomic<std::uint64_t> words_{0};
};

}  // namespace penstock::routing
