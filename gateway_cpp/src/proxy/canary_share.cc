// Which canary a request has a share of, and in which of its arms it is: those are two deployments,
// two versions of an adapter, or two revisions of a deployment. Where it is asked first, and that
// the candidate could not have it, is decided here; the way back is everybody's (destination.cc).
#include <memory>
#include <string>
#include <utility>

#include "admission/decision.h"
#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "routing/canary.h"

namespace penstock::proxy {

using routing::PassedOver;

namespace {

constexpr size_t kDigestShown = 12;

void sit_down(Exchange& x, const routing::Route& named, const routing::CanaryRule& rule,
              bool candidate) {
  x.canary = std::make_unique<CanarySeat>(
      CanarySeat{.rule = {named.deployment, &rule}, .session = x.share(), .candidate = candidate});
}

// What it would have been told there.
base::Error refusal_of(const std::string& candidate, PassedOver why) {
  if (why == PassedOver::kUnknown || why == PassedOver::kNoReplica) {
    return admission::refusal_error(candidate, {admission::DropReason::kNoReadyReplica});
  }
  return base::make_error(
      base::Kind::kUnsupportedEndpoint,
      "The model `" + candidate + "` cannot answer: " + std::string(routing::name(why)) + ".");
}

// The candidate has not had it: the stable arm is to answer.
void pass_over(Exchange& x, const std::string& candidate, PassedOver why) {
  // That its tenant may not go there is no fault of the candidate's.
  if (why == PassedOver::kNotAllowed) return x.canary.reset();
  x.record().pass_over(candidate, routing::name(why), x.settlement.entered_us());
  x.canary->course.left(refusal_of(candidate, why));
}

}  // namespace

// The version that `named` was resolved to, where it is a candidate's: `named` is the stable one
// then, as which the request was asked for.
std::optional<routing::Route> RequestFlow::candidate_version(const Exchange& x,
                                                             routing::Route& named) {
  const routing::CanaryRule* rule = routing::rule_for(*named.deployment, x.request.model);
  const bool is_candidate =
      rule != nullptr && !rule->alias.empty() && named.adapter() == rule->candidate_adapter;
  if (!is_candidate) return std::nullopt;
  auto stable = parts_.routes.read()->resolve(named.deployment->name + ":" + rule->stable_adapter);
  if (!stable) return std::nullopt;
  return routing::Route{named.deployment, std::exchange(named.version, stable->version)};
}

// Who answers it as long as it can; nothing: nobody but the one that was asked. An alias's canary
// goes before one of the deployment, by which its requests would leave it.
std::optional<RequestFlow::Elsewhere> RequestFlow::canary_of(
    Exchange& x, const Elsewhere& named, std::optional<routing::Route> version) {
  const routing::DeploymentRoute& asked = *named.route.deployment;
  const routing::CanaryRule* rule = routing::rule_for(asked, x.request.model);
  if (rule != nullptr && !rule->alias.empty()) {
    if (version && x.caller().tenant->refuses(asked.name, version->adapter())) return std::nullopt;
    if (!version && named.route.adapter() != rule->stable_adapter) return std::nullopt;
    sit_down(x, named.route, *rule, version.has_value());
    if (!version) return std::nullopt;
    return Elsewhere{*std::move(version), named.dispatcher};
  }
  const routing::CanaryWeight* weight = routing::canary_for(asked.canary, x.share());
  const bool is_another =
      weight != nullptr && weight->template_digest.empty() && weight->deployment != asked.name;
  const bool is_judged = rule != nullptr && (!is_another || weight->deployment == rule->candidate);
  if (is_judged && !rule->candidate_digest.empty()) return revision_of(x, named, *rule);
  if (is_judged) sit_down(x, named.route, *rule, is_another);
  return is_another ? deployment_of(x, named.route, weight->deployment) : std::nullopt;
}

std::optional<RequestFlow::Elsewhere> RequestFlow::deployment_of(Exchange& x,
                                                                 const routing::Route& named,
                                                                 const std::string& candidate) {
  auto found = elsewhere(x, named, candidate, Way::kCanary, false);
  auto* there = std::get_if<Elsewhere>(&found);
  if (there != nullptr && there->dispatcher->is_usable_for(there->route.adapter())) {
    return std::move(*there);
  }
  const auto* why = std::get_if<PassedOver>(&found);
  if (x.canary) pass_over(x, candidate, why != nullptr ? *why : PassedOver::kNoReplica);
  return std::nullopt;
}

// The dispatcher sends it there; a session that is kept where it began belongs to that arm.
std::optional<RequestFlow::Elsewhere> RequestFlow::revision_of(Exchange& x, const Elsewhere& named,
                                                               const routing::CanaryRule& rule) {
  x.at.wanted.session = x.session_hash();
  x.at.wanted.share = x.share();
  const bool candidate = named.dispatcher->is_for(rule.candidate_digest, x.at.wanted);
  sit_down(x, named.route, rule, candidate);
  if (!candidate) return std::nullopt;
  return named;
}

// What it leaves, as the log tells it.
std::string RequestFlow::arm_of(const Exchange& x) {
  const RequestRecord& record = x.settlement.record;
  if (x.at.way != Way::kCanary || !x.is_at_home()) return record.deployment();
  const std::string& digest = x.canary->rule->candidate_digest;
  return digest.empty() ? record.deployment() + ":" + record.adapter()
                        : record.deployment() + "@" + digest.substr(0, kDigestShown);
}

// Its place may be at another revision: the candidate's replicas have failed it, or have no room.
void RequestFlow::note_revision(Exchange& x) {
  const std::string& digest = x.canary->rule->candidate_digest;
  if (digest.empty()) return;
  const bool is_there = x.at.dispatcher->is_of(*x.at.replica(), digest);
  if (!x.canary->candidate && is_there) return x.canary.reset();  // it says nothing of either arm
  if (x.at.way != Way::kCanary || is_there) return;
  const std::string arm = arm_of(x);
  const bool was_there = x.attempts.last() && x.attempts.failover().reached_any();
  const base::Error why = was_there ? *x.attempts.last() : refusal_of(arm, PassedOver::kNoReplica);
  x.record().leave(arm, cause_of(why));
  x.record().return_to(x.record().deployment(), x.record().adapter(), x.settlement.entered_us());
  x.canary->course.left(why);
  x.at.way = Way::kReturned;
  x.at.wanted.rest = true;
}

}  // namespace penstock::proxy
