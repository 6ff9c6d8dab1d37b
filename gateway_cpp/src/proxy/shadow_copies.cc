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

ShadowCopies::ShadowCopies(const Parts& parts) : parts_(parts) {}

ShadowCopies::~ShadowCopies() = default;

std::variant<routing::Route, ShadowOutcome> ShadowCopies::way_of(
    const routing::ShadowRule& rule, const admission::Tenant& tenant, bool may_degrade,
    const routing::Needs& needs) const {
  if (tenant.shadow_never) return ShadowOutcome::kNotAllowed;
  auto there =
      routing::route_shadow(*parts_.routes.read(), rule.candidate, rule.candidate_adapter, needs);
  auto* route = std::get_if<routing::Route>(&there);
  if (route == nullptr) return ShadowOutcome::kNotComparable;
  if (admission::is_kept_from(tenant, may_degrade, *route->deployment)) {
    return ShadowOutcome::kNotAllowed;
  }
  return std::move(*route);
}

std::optional<ShadowOutcome> ShadowCopies::stands_against(const routing::ShadowRule& rule,
                                                          const ShadowLook& look) const {
  const auto way = way_of(rule, *look.tenant, look.may_degrade,
                          {.endpoint = look.endpoint.path, .tools = look.has_tools});
  if (const auto* why = std::get_if<ShadowOutcome>(&way)) return *why;
  if (!parts_.sink.is_there()) return ShadowOutcome::kNoComparer;
  return parts_.sink.has_room() ? std::nullopt : std::optional(ShadowOutcome::kOverload);
}

std::unique_ptr<ShadowSample> ShadowCopies::sample(const ShadowLook& look) {
  std::unique_ptr<ShadowSample> sample;
  for (const routing::ShadowRule& rule : look.named.deployment->shadows) {
    if (!admission::is_sampled(rule, look.named.deployment->name, look.ask)) continue;
    auto why = stands_against(rule, look);
    if (!why && !sample) sample = std::make_unique<ShadowSample>(*this, parts_.budget);
    if (!why && !sample->body_share.grow_to(look.body_bytes)) why = ShadowOutcome::kBodyBudget;
    if (why) {
      parts_.book.count(rule.uid, rule.name, *why);
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
    parts_.book.count(rule->uid, rule->name, ShadowOutcome::kNotComparable);
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

// Both copies are there before the first one starts: it may end at once.
void ShadowCopies::begin(std::unique_ptr<ShadowSample> made) {
  const std::shared_ptr<const ShadowSample> sample(std::move(made));
  for (const auto& [before, again] : sample->rules) {
    const auto rule = still(*sample, before->uid);
    if (!rule) parts_.book.count(before->uid, before->name, ShadowOutcome::kNotComparable);
    if (!rule) continue;
    const auto pair = std::make_shared<OpenPair>(sample, rule, parts_.book, parts_.sink);
    ShadowCopy* const candidate = make(pair, ShadowArm::kCandidate);
    if (candidate == nullptr) continue;
    ShadowCopy* const self = again ? make(pair, ShadowArm::kSelf) : nullptr;
    const bool self_first = self != nullptr && is_odd(sample->pair.request_id());
    if (self_first) start(self);
    start(candidate);
    if (self != nullptr && !self_first) start(self);
  }
}

// Null: none may begin.
ShadowCopy* ShadowCopies::make(const std::shared_ptr<OpenPair>& pair, ShadowArm arm) {
  if (stopped_) return nullptr;
  if (const auto why = parts_.book.begin(pair->rule(), parts_.clock.steady_now())) {
    pair->lack(arm, *why);
    return nullptr;
  }
  auto made = std::make_unique<ShadowCopy>(parts_, *this, pair, arm);
  ShadowCopy* const copy = made.get();
  copies_.emplace(copy, std::move(made));
  pair->begin();
  return copy;
}

void ShadowCopies::start(ShadowCopy* copy) {
  boost::asio::co_spawn(parts_.io, copy->run(),
                        [this, copy](const std::exception_ptr& broken) { end(copy, broken); });
}

// Where the candidate came to nothing, nobody needs what the primary answers again.
void ShadowCopies::end(ShadowCopy* copy, const std::exception_ptr& broken) {
  try {
    const std::shared_ptr<OpenPair> pair = copy->pair();
    copies_.erase(copy);
    pair->end();
    const auto is_other = [&pair](const auto& each) { return each.second->pair() == pair; };
    const auto other = std::ranges::find_if(copies_, is_other);
    if (pair->is_void() && other != copies_.end()) other->second->stop();
    if (broken) std::rethrow_exception(broken);
  } catch (const std::exception& error) {
    parts_.log.error("a shadow ended by an exception", {{"error", error.what()}});
  }
}

// Copies end while they are told.
void ShadowCopies::stop() {
  stopped_ = true;
  std::vector<ShadowCopy*> all;
  for (const auto& [key, copy] : copies_) all.push_back(copy.get());
  for (ShadowCopy* copy : all) copy->stop();
}

}  // namespace penstock::proxy
