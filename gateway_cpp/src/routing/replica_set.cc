#include "routing/replica_set.h"

#include <algorithm>
#include <utility>

#include "routing/power_of_two_policy.h"

namespace penstock::routing {
namespace {

using std::chrono::milliseconds;

constexpr base::SteadyTime kNever = base::SteadyTime::max();
// A suspect that is spared because nobody else is usable is looked at again after so long.
constexpr std::chrono::seconds kSparedFor{1};
// Of what replicas say of themselves, whose number is kept: they are foreign.
constexpr std::size_t kLongestHash = 128;
constexpr std::size_t kMostConfigs = 4096;

milliseconds left_of(base::SteadyTime until, base::SteadyTime now) {
  return until > now ? std::chrono::ceil<milliseconds>(until - now) : milliseconds(0);
}

}  // namespace

ReplicaSet::ReplicaSet(GatewayPlace place, std::uint64_t seed)
    : place_(std::move(place)), random_(seed), policy_(make_policy({})) {}

std::shared_ptr<Replica> ReplicaSet::reserve(const Traits& traits, base::SteadyTime now,
                                             Pick* pick) {
  wake(now);
  Looks looks;
  Candidates::Filter filter{.excluded = resolve(traits.excluded), .looks = &looks};
  Replica* chosen = choose(traits, filter);
  if (chosen == nullptr) return nullptr;
  if (pick != nullptr) tell(*chosen, traits, filter, *pick);
  // A session stays of its arm, also where the other one had to answer it.
  if (revisions_.matter() && !traits.rest && traits.continues == 0) {
    revisions_.remember(traits.session, chosen->revision());
  }
  return take(*chosen, traits.continues, now);
}

std::shared_ptr<Replica> ReplicaSet::take(Replica& chosen, std::uint32_t continues,
                                          base::SteadyTime now) {
  ++chosen.own_;
  ++chosen.unseen_;
  chosen.continued_ += continues != 0 ? 1 : 0;
  chosen.progress_.sent(now);
  chosen.breaker_.sent(now);
  touch(chosen, now);
  return members_[chosen.member_at_];
}

std::shared_ptr<Replica> ReplicaSet::reserve_at(const ReplicaId& id, What what,
                                                base::SteadyTime now) {
  wake(now);
  const auto known = by_id_.find(id.value);
  if (known == by_id_.end() || !known->second->standing().open) return nullptr;
  known->second->legs_ += what == What::kLeg ? 1 : 0;
  return take(*known->second, 0, now);
}

void ReplicaSet::release_leg(Replica& replica, base::SteadyTime now) {
  if (replica.legs_ > 0) --replica.legs_;
  release(replica, now);
}

Replica* ReplicaSet::choose(const Traits& traits, Candidates::Filter& filter) {
  const bool minds = revisions_.matter() && traits.continues == 0;
  return minds ? choose_of_revision(traits, filter) : choose_among(traits, filter);
}

namespace {

// How many sound ones of a revision are among these.
Revisions::Excluded among(const std::vector<const Replica*>& excluded) {
  return [&excluded](std::uint32_t revision) {
    return static_cast<std::uint32_t>(std::ranges::count_if(excluded, [=](const Replica* one) {
      return one->revision() == revision && one->standing().sound;
    }));
  };
}

}  // namespace

bool ReplicaSet::has_rest(std::span<const ReplicaId> excluded) const {
  const auto known = resolve(excluded);
  return revisions_.has_rest(among(known));
}

// One without room is waited for by those that can wait, and by nobody else.
Replica* ReplicaSet::choose_of_revision(const Traits& traits, Candidates::Filter& filter) {
  filter.wish = revisions_.wish(traits, among(filter.excluded));
  if (filter.wish) {
    filter.revisions = &revisions_;
    Replica* chosen =
        revisions_.may_be_called(filter.wish) ? choose_among(traits, filter) : nullptr;
    const bool waits = filter.wish.strict || (filter.wish.firm && traits.patient);
    if (chosen != nullptr || waits) return chosen;
    filter.revisions = nullptr;
  }
  return choose_among(traits, filter);
}

Replica* ReplicaSet::choose_among(const Traits& traits, const Candidates::Filter& filter) {
  const auto sound_ones = std::ranges::count_if(
      filter.excluded, [](const Replica* replica) { return replica->standing().sound; });
  // An answer that is gone on with waits for one that nothing speaks against.
  const bool any_sound =
      traits.continues != 0 || totals_.sound > static_cast<std::uint64_t>(sound_ones);
  filter.looks->by = policy_->name();
  const Candidates candidates(callable_, preferences_, totals_, traits, filter, random_);
  if (!any_sound) return better_of_two(spare_, candidates);
  const bool mixed = adapting_.size() > 0 && adapting_.size() < callable_.size();
  Replica* chosen =
      mixed && !traits.adapter.empty() ? choose_adapting(candidates) : policy_->choose(candidates);
  if (chosen != nullptr || kept_.size() == 0) return chosen;
  return all_decoders_are_excluded(traits, filter) ? better_of_two(kept_, candidates) : nullptr;
}

// One that is full is waited for, as long as there is one.
bool ReplicaSet::all_decoders_are_excluded(const Traits& traits,
                                           const Candidates::Filter& filter) const {
  const auto may_answer = [&traits](const auto& replica) {
    const Standing& standing = replica->standing();
    return standing.decoder && (traits.continues == 0 || standing.continues == traits.continues);
  };
  const auto all = traits.continues == 0 ? decoders_ : std::ranges::count_if(members_, may_answer);
  return all == std::ranges::count_if(filter.excluded, may_answer);
}

bool ReplicaSet::is_ready_to_continue(std::uint32_t config,
                                      std::span<const ReplicaId> excluded) const {
  return std::ranges::any_of(members_, [&](const auto& replica) {
    const Standing& standing = replica->standing();
    return standing.sound && standing.continues == config &&
           std::ranges::find(excluded, replica->id()) == excluded.end();
  });
}

bool ReplicaSet::has_room_to_continue(std::uint32_t config, bool runs_on) const {
  return std::ranges::any_of(members_, [=](const auto& replica) {
    const Standing& standing = replica->standing();
    return standing.open && standing.continues == config && (!runs_on || replica->takes_over());
  });
}

std::uint32_t ReplicaSet::config_number(const std::string& hash) {
  if (hash.empty() || hash.size() > kLongestHash) return 0;
  const auto known = std::ranges::find(configs_, hash);
  if (known == configs_.end() && configs_.size() == kMostConfigs) return 0;
  const auto number = static_cast<std::uint32_t>(known - configs_.begin()) + 1;
  if (known == configs_.end()) configs_.push_back(hash);
  return number;
}

// Some of those that may be called take no adapters, which no policy knows of.
Replica* ReplicaSet::choose_adapting(const Candidates& candidates) {
  const Preferences::Few few = candidates.for_adapter();
  Replica* chosen =
      least_of(few.all(), [](const Replica& replica) { return replica.standing().score; });
  if (chosen == nullptr) chosen = better_of_two(adapting_, candidates);
  if (chosen == nullptr) return policy_->choose(candidates);
  candidates.looks().by = kByAdapter;
  return chosen;
}

std::vector<const Replica*> ReplicaSet::resolve(std::span<const ReplicaId> ids) const {
  std::vector<const Replica*> found;
  for (const ReplicaId& id : ids) {
    const auto known = by_id_.find(id.value);
    if (known != by_id_.end() && std::ranges::find(found, known->second) == found.end()) {
      found.push_back(known->second);
    }
  }
  return found;
}

void ReplicaSet::release(Replica& replica, base::SteadyTime now) {
  if (replica.own_ > 0) --replica.own_;
  replica.progress_.released();
  replica.breaker_.released();
  touch(replica, now);
}

void ReplicaSet::report(Replica& replica, const LoadReport& load, base::SteadyTime now) {
  const bool other_adapters = !replica.has_reported_ ||
                              replica.reported_.adapters != load.adapters ||
                              replica.reported_.adapter_slots != load.adapter_slots;
  const std::uint32_t sequences = load.running + load.waiting;
  const std::uint32_t seen =
      load.gateways > 0 ? load.calls - std::min(load.calls, load.calls_elsewhere) : replica.own_;
  replica.unseen_ = replica.own_ - std::min(replica.own_, seen);
  replica.continued_ = std::min(replica.continued_, replica.unseen_);
  // One that does not count calls counts its sequences, ours among them.
  replica.elsewhere_ =
      load.gateways > 0 ? load.calls_elsewhere : sequences - std::min(sequences, replica.own_);
  replica.progress_.report(load, now);
  // What it had begun lost its place for want of KV blocks: there are none for more.
  replica.preempts_ = replica.has_reported_ && replica.reported_.serving &&
                      load.preemptions > replica.reported_.preemptions;
  if (load.config_hash != replica.reported_.config_hash) {
    replica.config_ = config_number(load.config_hash);
  }
  replica.reported_ = load;
  replica.has_reported_ = true;
  replica.silent_ = false;
  if (other_adapters && replica.listed_) learn(replica);
  touch(replica, now);
}

milliseconds ReplicaSet::note_failure(Replica& replica, Failure failure, base::SteadyTime now) {
  using Last = Breaker::Last;
  const milliseconds doubt =
      replica.breaker_.fail(failure, another_is_sound(replica) ? Last::kNo : Last::kYes, now);
  if (doubt.count() > 0) note_ejection(replica.breaker_.reason());
  replica.silent_ = replica.silent_ || failure == Failure::kSilent;
  touch(replica, now);
  return doubt;
}

void ReplicaSet::note_ejection(std::string_view reason) {
  const auto found = std::ranges::find(kDoubtReasons, reason);
  ++ejections_[static_cast<std::size_t>(found - kDoubtReasons.begin())];
}

void ReplicaSet::note_success(Replica& replica, base::SteadyTime now) {
  const bool doubted = replica.breaker_.state() != Breaker::State::kClosed || replica.suspected_;
  if (replica.breaker_.state() != Breaker::State::kClosed) replica.slow_start_.begin(now);
  replica.breaker_.answer();
  replica.progress_.answered(now);
  if (doubted) touch(replica, now);
}

void ReplicaSet::note_back(Replica& replica, base::SteadyTime now) {
  const bool doubted = replica.breaker_.state() != Breaker::State::kClosed;
  replica.breaker_.back();
  if (doubted && replica.breaker_.state() == Breaker::State::kClosed) {
    replica.slow_start_.begin(now);
  }
  touch(replica, now);
}

bool ReplicaSet::advance(base::SteadyTime now) {
  wake(now);
  return std::exchange(opened_, false);
}

void ReplicaSet::wake(base::SteadyTime now) {
  while (!wakes_.empty() && wakes_.top().at <= now) {
    const Wake wake = wakes_.top();
    wakes_.pop();
    Replica& replica = *wake.replica;
    if (wake.at != replica.wake_at_) continue;  // another is due instead
    const std::uint32_t before = with_room();
    replica.wake_at_ = kNever;
    touch(replica, now);
    if (with_room() > before) opened_ = true;
  }
}

void ReplicaSet::touch(Replica& replica, base::SteadyTime now) {
  if (!replica.listed_) return;
  replica.breaker_.advance(replica.own_, now);
  replica.slow_start_.advance(now);
  if (!replica.progress_.is_stuck(limits_.progress_deadline, now)) {
    replica.suspected_ = false;
  } else if (!replica.suspected_ && another_is_sound(replica)) {
    replica.suspected_ = true;
    note_ejection(kNoProgress);
  }
  say(replica);
  settle(replica, now);
  schedule(replica, now);
}

void ReplicaSet::settle(Replica& replica, base::SteadyTime now) {
  replica.limit_ = replica.limit_by(limits_);
  const Standing was = replica.standing_;
  Standing is = replica.stands(limits_, now, decoders_ > 0);
  if (is.ready && !was.ready && followed_) {
    replica.slow_start_.begin(now);
    is = replica.stands(limits_, now, decoders_ > 0);
  }
  if (is == was) return;
  replica.standing_ = is;
  equals_changes_ += (was.sound ? was.continues : 0) != (is.sound ? is.continues : 0) ? 1 : 0;
  revisions_.note(replica.revision_, was, is);
  counts_.ready += is.ready - was.ready;
  counts_.starting += is.starting - was.starting;
  counts_.under_pressure += is.pressured - was.pressured;
  slotted_ += is.slotted - was.slotted;
  totals_.sound += is.sound - was.sound;
  totals_.load += is.sound ? is.load : 0;
  totals_.load -= was.sound ? was.load : 0;
  if (is.callable != was.callable) callable_.set(replica, is.callable);
  if (is.spare != was.spare) spare_.set(replica, is.spare);
  if (is.adapting != was.adapting) adapting_.set(replica, is.adapting);
  if (is.kept != was.kept) kept_.set(replica, is.kept);
  policy_->update(replica);
  if (is.decoder != was.decoder) count_decoder(is.decoder ? 1 : -1, now);
}

// With the last one that decodes, those that prefill take what there is; with the first, no more.
void ReplicaSet::count_decoder(int more, base::SteadyTime now) {
  const bool had_any = decoders_ > 0;
  decoders_ += more;
  if ((decoders_ > 0) == had_any) return;
  for (const auto& member : members_) {
    if (member->is_prefill()) touch(*member, now);
  }
}

void ReplicaSet::schedule(Replica& replica, base::SteadyTime now) {
  base::SteadyTime due = std::min(replica.breaker_.due(), replica.slow_start_.due());
  const auto stuck = replica.progress_.due(limits_.progress_deadline);
  if (stuck && !replica.suspected_) due = std::min(due, std::max(*stuck, now + kSparedFor));
  if (due >= replica.wake_at_) return;
  replica.wake_at_ = due;
  wakes_.push({due, members_[replica.member_at_]});
}

std::uint32_t ReplicaSet::with_room() const {
  const ReplicaList& pool = totals_.sound > 0 ? callable_ : spare_;
  return static_cast<std::uint32_t>(pool.size());
}

bool ReplicaSet::another_is_sound(const Replica& besides) const {
  return totals_.sound > (besides.standing().sound ? 1U : 0U);
}

Counts ReplicaSet::counts() const {
  Counts counts = counts_;
  counts.with_room = with_room();
  return counts;
}

std::vector<Doubt> ReplicaSet::doubts(base::SteadyTime now) const {
  std::vector<Doubt> found;
  for (const auto& replica : members_) {
    if (replica->breaker_.state() == Breaker::State::kOpen && replica->breaker_.until() > now) {
      found.push_back(
          {replica->id(), replica->breaker_.reason(), left_of(replica->breaker_.until(), now)});
    } else if (replica->suspected_) {
      found.push_back({replica->id(), kNoProgress, milliseconds(0)});
    }
  }
  return found;
}

std::shared_ptr<Replica> ReplicaSet::find(const ReplicaId& id) const {
  const auto known = by_id_.find(id.value);
  return known == by_id_.end() ? nullptr : members_[known->second->member_at_];
}

bool ReplicaSet::another_is_usable(const ReplicaId& besides, base::SteadyTime now) {
  wake(now);
  const auto known = by_id_.find(besides.value);
  const Standing itself = known == by_id_.end() ? Standing{} : known->second->standing();
  return totals_.sound > (itself.sound ? 1U : 0U) || callable_.size() > (itself.callable ? 1U : 0U);
}

bool ReplicaSet::is_ready_for(std::string_view adapter) const {
  const auto is_ready = [](const Replica* replica) { return replica->standing().ready; };
  return slotted_ > 0 || std::ranges::any_of(preferences_.holders(adapter), is_ready);
}

}  // namespace penstock::routing
