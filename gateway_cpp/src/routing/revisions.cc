#include "routing/revisions.h"

#include <algorithm>
#include <cmath>

#include "routing/canary.h"
#include "routing/hashing.h"

namespace penstock::routing {
namespace {

// 0 to 1, both excluded.
double fraction(std::uint64_t hash) {
  constexpr double kStep = 1.0 / (1ULL << 53U);
  return (static_cast<double>(hash >> 11U) + 0.5) * kStep;
}

}  // namespace

void Revisions::follow(const DeploymentRoute& route) {
  keeps_sessions_ = route.keeps_sessions;
  if (keeps_sessions_) {
    sessions_.set_capacity(kSessions);
  } else {
    sessions_ = {};
  }
  canary_ = route.canary;
  shares_.assign(canary_.size(), 0);
  has_shares_ = false;
  for (Revision& revision : revisions_) {
    revision.listed = 0;
    revision.has_share = false;
  }
  for (std::size_t i = 0; i < canary_.size(); ++i) {
    if (canary_[i].template_digest.empty()) continue;
    shares_[i] = number_of(canary_[i].template_digest);
    revisions_[shares_[i] - 1].has_share = has_shares_ = true;
  }
}

void Revisions::listed(const Replica& replica) {
  const bool ready = replica.route().state == ReplicaState::kReady;
  revisions_[replica.revision() - 1].listed += ready ? 1 : 0;
}

std::uint32_t Revisions::number_of(const std::string& digest) {
  const auto known = std::ranges::find(revisions_, digest, &Revision::digest);
  const auto number = static_cast<std::uint32_t>(known - revisions_.begin()) + 1;
  if (known == revisions_.end()) revisions_.push_back({digest, hash_text(digest)});
  return number;
}

void Revisions::note(std::uint32_t revision, const Standing& was, const Standing& is) {
  Revision& its = revisions_[revision - 1];
  its.sound += is.sound - was.sound;
  its.callable += is.callable - was.callable;
}

// A session stays where it began; of one that is not known the canaries decide, then its name.
Revisions::Wish Revisions::wish(const Traits& traits, const Excluded& excluded) {
  if (traits.rest) return {.rest = true, .firm = true, .strict = true};
  const std::uint32_t began = known(traits.session);
  if (began != 0 && serves(began, excluded)) return {.only = began, .firm = true};
  if (has_shares_ && traits.share != 0) {
    if (const Wish wish = canary_wish(traits, excluded)) return wish;
  }
  if (!keeps_sessions_ || traits.session == 0) return {};
  return new_session_wish(traits.session, excluded);
}

// Of the revision where the session began; 0: it is not known, or that counts for nothing.
std::uint32_t Revisions::known(std::uint64_t session) {
  return keeps_sessions_ && session != 0 ? sessions_.find(session) : 0;
}

bool Revisions::is_for(const std::string& digest, const Traits& traits) {
  // As wish() has it: a revision that is gone keeps nobody.
  const std::uint32_t began = known(traits.session);
  if (began != 0 && (revisions_[began - 1].sound > 0 || revisions_[began - 1].digest == digest)) {
    return revisions_[began - 1].digest == digest;
  }
  const CanaryWeight* weight = canary_for(canary_, traits.share);
  return weight != nullptr && weight->template_digest == digest;
}

bool Revisions::has_rest(const Excluded& excluded) const {
  for (std::uint32_t number = 1; number <= revisions_.size(); ++number) {
    if (!revisions_[number - 1].has_share && serves(number, excluded)) return true;
  }
  return false;
}

bool Revisions::serves(std::uint32_t number, const Excluded& excluded) const {
  const std::uint32_t sound = revisions_[number - 1].sound;
  return sound > 0 && sound > excluded(number);
}

// One that is doubted is tried again, as nobody else comes to it, by those that have not been
// there.
Revisions::Wish Revisions::canary_wish(const Traits& traits, const Excluded& excluded) const {
  const CanaryWeight* weight = canary_for(canary_, traits.share);
  const std::uint32_t own = weight != nullptr ? shares_[weight - canary_.data()] : 0;
  const bool may_be_probed =
      own != 0 && traits.excluded.empty() && revisions_[own - 1].callable > 0;
  if (own != 0 && (may_be_probed || serves(own, excluded))) return {.only = own, .firm = true};
  return has_rest(excluded) ? Wish{.rest = true, .firm = true} : Wish{};
}

// Rendezvous, weighted by the replicas that the routes have: gateways that have the same routes
// choose alike, and while one revision takes another's place its share alone grows.
Revisions::Wish Revisions::new_session_wish(std::uint64_t session, const Excluded& excluded) const {
  Wish wish;
  double best = 0;
  for (std::uint32_t number = 1; number <= revisions_.size(); ++number) {
    const Revision& revision = revisions_[number - 1];
    if (revision.listed == 0 || !serves(number, excluded)) continue;
    const auto weight = static_cast<double>(revision.listed);
    const double score = -weight / std::log(fraction(mix(session ^ revision.hash)));
    if (wish.only != 0 && score <= best) continue;
    wish.only = number;
    best = score;
  }
  return wish;
}

bool Revisions::allows(const Wish& wish, const Replica& replica) const {
  if (wish.only != 0) return replica.revision() == wish.only;
  return !wish.rest || !revisions_[replica.revision() - 1].has_share;
}

bool Revisions::may_be_called(const Wish& wish) const {
  if (wish.only != 0) return revisions_[wish.only - 1].callable > 0;
  return std::ranges::any_of(revisions_, [](const Revision& revision) {
    return !revision.has_share && revision.callable > 0;
  });
}

void Revisions::remember(std::uint64_t session, std::uint32_t revision) {
  if (!keeps_sessions_ || session == 0 || sessions_.find(session) == revision) return;
  sessions_.put(session, revision);
}

}  // namespace penstock::routing
