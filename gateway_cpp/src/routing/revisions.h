// Which revision of its deployment a request is for, by the digest that a revision's replicas are
// made of: the one that its session began with, where the operator says that old and new are not to
// answer by turns, or the one that has a share as a canary. Owned and guarded as its ReplicaSet is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "routing/prefix_table.h"
#include "routing/replica.h"
#include "routing/route_snapshot.h"
#include "routing/traits.h"

namespace penstock::routing {

class Revisions {
 public:
  // Which replicas a request may go to.
  struct Wish {
    std::uint32_t only = 0;  // number of a revision; 0: of several
    bool rest = false;       // those without a share of their own
    bool firm = false;       // rather than go elsewhere it waits, if it can
    bool strict = false;     // it never goes elsewhere
    explicit operator bool() const { return only != 0 || rest; }
  };
  // How many sound replicas of the revision the request may not use.
  using Excluded = std::function<std::uint32_t(std::uint32_t revision)>;

  // Takes up what the deployment says, and how many replicas of each revision the routes have: to
  // be followed by listed() for each of these.
  void follow(const DeploymentRoute& route);
  void listed(const Replica& replica);

  // Of that digest, from 1: the same for as long as the gateway runs.
  std::uint32_t number_of(const std::string& digest);
  // A replica of the revision has another standing.
  void note(std::uint32_t revision, const Standing& was, const Standing& is);

  // False: any replica will do, whatever the request.
  bool matter() const { return keeps_sessions_ || has_shares_; }
  Wish wish(const Traits& traits, const Excluded& excluded);
  // Whether a request is for the revision of that digest, be it there or not: its session began
  // there, or of no session that is known it has the share.
  bool is_for(const std::string& digest, const Traits& traits);
  // Whether a replica serves that is of none with a share.
  bool has_rest(const Excluded& excluded) const;
  bool allows(const Wish& wish, const Replica& replica) const;
  // Whether one that the wish allows may be called.
  bool may_be_called(const Wish& wish) const;
  // The session's requests are for this revision from now on.
  void remember(std::uint64_t session, std::uint32_t revision);

  // Remembered at least, of those that asked last; at most twice as many.
  static constexpr std::size_t kSessions = 100'000;

 private:
  struct Revision {
    std::string digest;
    std::uint64_t hash = 0;
    std::uint32_t listed = 0;    // replicas that are ready by the routes
    std::uint32_t sound = 0;     // that nothing speaks against
    std::uint32_t callable = 0;  // that have room
    bool has_share = false;
  };

  std::uint32_t known(std::uint64_t session);
  bool serves(std::uint32_t number, const Excluded& excluded) const;
  Wish canary_wish(const Traits& traits, const Excluded& excluded) const;
  Wish new_session_wish(std::uint64_t session, const Excluded& excluded) const;

  std::vector<Revision> revisions_;  // [number - 1]
  std::vector<CanaryWeight> canary_;
  std::vector<std::uint32_t> shares_;  // of each of them, the number of the revision; 0: of none
  bool has_shares_ = false;            // there is a revision with one
  bool keeps_sessions_ = false;
  PrefixTable sessions_;  // by hash: the number of the revision
};

}  // namespace penstock::routing
