#include "proxy/shadow_copies.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "proxy/shadow_copy.h"
#include "routing/hashing.h"

namespace penstock::proxy {

using admission::ShadowOutcome;

namespace {

// By lot: who is sent first finds an idler engine, and neither arm is to gain by that on the whole.
bool is_odd(std::string_view request_id) {
  return routing::mix(routing::hash_text(request_id)) % 2 != 0;
}

}  // namespace

ShadowCopies::ShadowCopies(const ThreadParts& parts) : parts_(parts) {}

ShadowCopies::~ShadowCopies() = default;

std::optional<ShadowOutcome> ShadowCopies::stands_against(const routing::ShadowRule& rule,
                                                          const ShadowLook& look) const {
  if (look.tenant->shadow_never) return ShadowOutcome::kNotAllowed;
  if (!rule.is_recording()) {
    const auto way = shadow_way(*parts_.routes.read(), rule.candidate, rule.candidate_adapter,
                                {*look.tenant, look.may_degrade},
                                {.endpoint = look.endpoint.path, .tools = look.has_tools});
    if (const auto* why = std::get_if<ShadowOutcome>(&way)) return *why;
  }
  if (!parts_.shadow_sink.is_there()) return ShadowOutcome::kNoComparer;
  return parts_.shadow_sink.has_room() ? std::nullopt : std::optional(ShadowOutcome::kOverload);
}

std::unique_ptr<ShadowSample> ShadowCopies::sample(const ShadowLook& look) {
  std::unique_ptr<ShadowSample> sample;
  for (const routing::ShadowRule& rule : look.named.deployment->shadows) {
    if (!admission::is_sampled(rule, look.named.deployment->name, look.ask)) continue;
    auto why = stands_against(rule, look);
    if (!why && !sample) sample = std::make_unique<ShadowSample>(*this, parts_.shadow_bytes);
    if (!why && !sample->body_share.grow_to(look.body_bytes)) why = ShadowOutcome::kBodyBudget;
    if (why) {
      parts_.shadow_book.count(rule.uid, rule.name, *why);
      continue;
    }
    sample->rules.push_back(
        {{look.named.deployment, &rule}, admission::is_asked_again(rule, look.ask)});
  }
  if (!sample || sample->rules.empty()) return nullptr;
  sample->named = look.named;
  sample->tenant = look.tenant;
  sample->may_degrade = look.may_degrade;
  sample->endpoint = &look.endpoint;
  return sample;
}

void ShadowCopies::drop(const ShadowSample& sample) {
  for (const auto& [rule, again] : sample.rules) {
    parts_.shadow_book.count(rule->uid, rule->name, ShadowOutcome::kNotComparable);
  }
}

// The rule as it is by now, with which requests of before may go on as well; null: it has ended, or
// is paused.
std::shared_ptr<const routing::ShadowRule> ShadowCopies::still(const ShadowSample& sample,
                                                               const std::string& uid) const {
  const auto& deployments = parts_.routes.read()->deployments();
  const auto primary = deployments.find(sample.named.deployment->name);
  if (primary == deployments.end()) return nullptr;
  const auto& rules = primary->second->shadows;
  const auto found = std::ranges::find(rules, uid, &routing::ShadowRule::uid);
  if (found == rules.end()) return nullptr;
  return {primary->second, &*found};
}

void ShadowCopies::begin(std::unique_ptr<ShadowSample> made) {
  if (stopped_) return;
  const std::shared_ptr<const ShadowSample> sample(std::move(made));
  for (const auto& [before, again] : sample->rules) {
    const auto rule = still(*sample, before->uid);
    if (!rule) parts_.shadow_book.count(before->uid, before->name, ShadowOutcome::kNotComparable);
    if (!rule) continue;
    if (rule->is_recording()) {
      record(*sample, *rule);
    } else {
      begin(std::make_shared<OpenPair>(sample, rule, parts_.shadow_book, parts_.shadow_sink),
            again);
    }
  }
}

void ShadowCopies::record(const ShadowSample& sample, const routing::ShadowRule& rule) {
  v1::ShadowPair pair = sample.pair;
  pair.set_rule(rule.uid);
  parts_.shadow_sink.offer(std::move(pair), sample.body);
}

// Both copies are there before the first one starts: it may end at once.
void ShadowCopies::begin(const std::shared_ptr<OpenPair>& pair, bool again) {
  const auto candidate = make(pair, ShadowArm::kCandidate);
  if (const auto* why = std::get_if<ShadowOutcome>(&candidate)) {
    return pair->lack(ShadowArm::kCandidate, *why);
  }
  std::variant<ShadowCopy*, ShadowOutcome> self = ShadowOutcome::kNotComparable;
  if (again) self = make(pair, ShadowArm::kSelf);
  const auto* const lack = std::get_if<ShadowOutcome>(&self);
  if (lack != nullptr && *lack == ShadowOutcome::kConcurrency) pair->owe_again();
  auto* const* const other = std::get_if<ShadowCopy*>(&self);
  const bool self_first = other != nullptr && is_odd(pair->sample().pair.request_id());
  if (self_first) start(*other);
  start(std::get<ShadowCopy*>(candidate));
  if (other != nullptr && !self_first) start(*other);
}

// Or why none may begin.
std::variant<ShadowCopy*, ShadowOutcome> ShadowCopies::make(const std::shared_ptr<OpenPair>& pair,
                                                            ShadowArm arm) {
  if (const auto why = parts_.shadow_book.begin(pair->rule(), parts_.clock.steady_now()))
    return *why;
  auto made = std::make_unique<ShadowCopy>(parts_, pair, arm);
  ShadowCopy* const copy = made.get();
  copies_.emplace(copy, std::move(made));
  pair->begin();
  return copy;
}

void ShadowCopies::start(ShadowCopy* copy) {
  boost::asio::co_spawn(parts_.io, copy->run(),
                        [this, copy](const std::exception_ptr& broken) { end(copy, broken); });
}

void ShadowCopies::end(ShadowCopy* copy, const std::exception_ptr& broken) {
  try {
    const std::shared_ptr<OpenPair> pair = copy->pair();
    copies_.erase(copy);
    if (!stopped_ && pair->is_again_due()) go_on(pair);
    pair->end();
    const auto is_other = [&pair](const auto& each) { return each.second->pair() == pair; };
    const auto other = std::ranges::find_if(copies_, is_other);
    // Nobody needs what the primary answers again where the candidate came to nothing.
    if (pair->is_void() && other != copies_.end()) other->second->stop();
    if (broken) std::rethrow_exception(broken);
  } catch (const std::exception& error) {
    parts_.log.error("a shadow ended by an exception", {{"error", error.what()}});
  }
}

// The candidate has answered, and its place among those under way is free. Who is faster may have
// it: the pair goes without then.
void ShadowCopies::go_on(const std::shared_ptr<OpenPair>& pair) {
  const auto self = make(pair, ShadowArm::kSelf);
  if (auto* const* copy = std::get_if<ShadowCopy*>(&self)) start(*copy);
}

// Copies end while they are told.
void ShadowCopies::stop() {
  stopped_ = true;
  std::vector<ShadowCopy*> all;
  for (const auto& [key, copy] : copies_) all.push_back(copy.get());
  for (ShadowCopy* copy : all) copy->stop();
}

}  // namespace penstock::proxy
