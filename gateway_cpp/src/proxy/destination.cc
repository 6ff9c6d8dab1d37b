// The one way into a deployment and the one out of it, and where a request goes on that could not
// be answered where it is: back to the deployment that was asked, where a canary had it, then down
// that one's ladder. Whoever comes from elsewhere is admitted as a newcomer.
#include "proxy/destination.h"

#include <string>
#include <utility>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "routing/elsewhere.h"

namespace penstock::proxy {

using routing::PassedOver;

namespace {

// Of the name that a request was resolved for, but maybe with other weights under its adapter.
bool is_another(const routing::DeploymentRoute& now, const routing::DeploymentRoute& then) {
  return now.uid != then.uid || now.base_family != then.base_family;
}

// The route with its deployment as it is now, and its adapter's version as it was; nothing: the
// deployment is gone, as it is where another one has its name.
std::optional<routing::Route> renewed(const routing::Routes& routes, const routing::Route& then) {
  const auto found = routes.deployments().find(then.deployment->name);
  if (found == routes.deployments().end() || is_another(*found->second, *then.deployment)) {
    return std::nullopt;
  }
  return routing::Route{found->second, then.version};
}

// Routes and dispatchers change one after the other: whoever comes again finds both.
base::Error just_replaced(const std::string& deployment) {
  auto error = base::make_error(
      base::Kind::kOverloaded,
      "The model `" + deployment + "` is just being replaced. Try again in a second.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace

// Of whom it leaves nothing stays with it, and each has on its page what happened there.
void RequestFlow::enter(Exchange& x, Way way, Elsewhere to) {
  if (!x.left.empty()) x.at.account = std::make_shared<Account>(x.at.account);
  x.at.way = way;
  x.at.wanted.rest = way == Way::kReturned && x.canary && !x.canary->rule->candidate_digest.empty();
  x.at.dispatcher = std::move(to.dispatcher);
  take(x, std::move(to.route));
}

// Gives back all that it has of the deployment that could not answer it: `why`.
void RequestFlow::leave(Exchange& x, const base::Error& why) {
  x.attempts.leave();
  x.program.reset();
  x.at.account->leave_budget();
  x.at.leave_unused();
  x.danger.leave();
  x.at.estimated_wait = {};
  x.settlement.left(arm_of(x), why);
  if (x.canary) x.canary->course.left(why);
  if (x.record().resumption) x.record().resumption->paid = {};  // there
  x.record().degraded = {};
  x.record().rung.clear();
  x.record().trimmed.clear();
  if (!x.has_left(x.record().deployment)) {
    x.left.push_back({x.record().deployment, x.at.dispatcher});
  }
}

// By its name, or to a canary that has its share.
base::MaybeError RequestFlow::resolve(Exchange& x) {
  x.settlement.enter(base::Phase::kResolve);
  x.asked.reset();
  x.canary.reset();
  auto route = parts_.routes.read()->resolve(x.request.model, [&x] { return x.share(); });
  const admission::Tenant& tenant = *x.caller().tenant;
  if (!route) return tenant.unresolved(route.error(), x.request.model);
  const routing::DeploymentRoute& named = *route->deployment;
  std::optional<routing::Route> version;
  if (!named.canary_rules.empty()) version = candidate_version(x, *route);
  x.record().deployment = named.name;
  x.record().slo = named.slo;
  x.record().adapter = route->adapter();
  if (auto no = tenant.refuses(named.name, route->adapter())) {
    return x.request.model.empty() ? tenant.unresolved(*no, {}) : *no;
  }
  // Who named no model is answered by the name of the one there is.
  if (x.request.model.empty()) x.request.model = named.name;
  auto dispatcher = parts_.dispatchers.of(named);
  if (!dispatcher) return just_replaced(named.name);
  Elsewhere to{*std::move(route), std::move(dispatcher)};
  if (x.left.empty() && !(named.canary.empty() && named.canary_rules.empty())) {
    if (auto canary = canary_of(x, to, std::move(version))) {
      x.asked = std::move(to.route);
      enter(x, Way::kCanary, *std::move(canary));
      return routing::refuses(x.at.route, x.ask.endpoint->path);
    }
  }
  enter(x, Way::kNamed, std::move(to));
  return routing::refuses(x.at.route, x.ask.endpoint->path);
}

void RequestFlow::take(Exchange& x, routing::Route route) {
  x.record().deployment = route.deployment->name;
  x.record().slo = route.deployment->slo;
  x.record().adapter = route.adapter();
  x.at.route = std::move(route);
}

// Before another attempt: the deployment may have other limits and replicas by now, or be gone.
base::MaybeError RequestFlow::resolve_again(Exchange& x) {
  x.settlement.enter(base::Phase::kResolve);
  auto route = renewed(*parts_.routes.read(), x.at.route);
  if (!route) return gone_from_routes(x.record().deployment);
  x.at.route = *std::move(route);
  return routing::refuses(x.at.route, x.ask.endpoint->path);
}

// Where the request goes if that deployment is to answer it: who may use the one that it named is
// served, but by no adapter that it may not use, or that nobody there can hold.
std::variant<RequestFlow::Elsewhere, routing::PassedOver> RequestFlow::elsewhere(
    Exchange& x, const routing::Route& named, const std::string& deployment, Way way,
    bool no_engine) {
  const routing::Needs needs{.model = x.request.model,
                             .share = [&x] { return x.share_hash(); },
                             .endpoint = x.ask.endpoint->path,
                             .tools = x.request.has_tools,
                             .no_engine = no_engine};
  // First of all: nobody is told anything else of a deployment that it may not use.
  const bool may_know = way != Way::kRung || x.ask.caller.tenant->lets_in(deployment);
  if (!may_know) return PassedOver::kNotAllowed;
  auto there = routing::route_elsewhere(*parts_.routes.read(), named, deployment, needs);
  if (const auto* no = std::get_if<PassedOver>(&there)) return *no;
  auto& route = std::get<routing::Route>(there);
  if (!may_be_sent(x, named, route, way)) return PassedOver::kNotAllowed;
  auto dispatcher = parts_.dispatchers.of(*route.deployment);
  if (!dispatcher) return PassedOver::kUnknown;
  if (!route.adapter().empty() && !dispatcher->is_usable_for(route.adapter())) {
    return PassedOver::kNoReplica;
  }
  return Elsewhere{std::move(route), std::move(dispatcher)};
}

// Whether its tenant lets a request that named the one go to the other, by a canary or a rung.
bool RequestFlow::may_be_sent(const Exchange& x, const routing::Route& named,
                              const routing::Route& there, Way way) {
  const admission::Tenant& tenant = *x.caller().tenant;
  if (tenant.refuses(named.deployment->name, there.adapter())) return false;
  // A canary with replicas of our own stands for the deployment that was asked.
  const bool bound = way == Way::kRung || there.deployment->managed;
  return !bound || tenant.lets_in(there.deployment->name);
}

// What it ends with; nothing: another deployment has taken it in.
Awaitable<base::MaybeError> RequestFlow::move_on(Exchange& x, base::Error no) {
  for (;;) {
    // Nor does another one help where this gateway has no memory left for the answer.
    const bool is_ours = no.kind == base::Kind::kOverloaded && no.drop_reason.empty();
    if (is_ours || x.stop() != Stop::kNo) co_return no;
    const bool anew = was_made_anew(x, no);
    const bool may_move =
        anew || x.at.way == Way::kCanary || x.descent != nullptr || begin_descent(x, no);
    if (!may_move) co_return no;
    co_await mark_suspect(x);
    if (anew || may_return(x, no)) {
      leave(x, no);
      base::MaybeError gone = anew ? resolve(x) : enter_asked(x);
      if (gone) co_return gone;
    } else {
      if (!x.descent && !begin_descent(x, no)) co_return no;
      if (!climb_down(x, no)) co_return step_back(x);
    }
    base::MaybeError refused = x.at.way == Way::kRung ? enter_rung(x) : std::nullopt;
    if (!refused) refused = co_await admit_newcomer(x);
    if (!refused) co_return std::nullopt;
    no = *std::move(refused);
  }
}

// The name that the request came by is another deployment's by now, which has not had it yet.
bool RequestFlow::was_made_anew(const Exchange& x, const base::Error& no) {
  const bool is_asked = x.at.way == Way::kNamed || x.at.way == Way::kReturned;
  if (!is_asked || x.descent || no.kind != base::Kind::kModelNotFound) return false;
  const auto& deployments = parts_.routes.read()->deployments();
  const auto found = deployments.find(x.settlement.record.deployment);
  return found != deployments.end() && x.at.route.deployment != nullptr &&
         is_another(*found->second, *x.at.route.deployment);
}

// From a canary, but not with what engines die of. What the deployment has refused it before it was
// sent anywhere it would refuse it again, by whatever version or revision.
bool RequestFlow::may_return(const Exchange& x, const base::Error& no) {
  if (x.at.way != Way::kCanary) return false;
  const bool dead =
      x.danger.may_kill() || admission::degrade_reason(no, x.ask.endpoint->prompt_field) ==
                                 admission::DegradeReason::kEngineDead;
  if (dead && !x.asked->deployment->managed) return false;
  if (!x.is_at_home()) return true;
  const bool has_stable = x.canary->rule->candidate_digest.empty() || x.at.dispatcher->has_rest({});
  return x.attempts.failover().attempts() > 0 && has_stable;
}

// The version of the adapter is the one that was named when the request came.
base::MaybeError RequestFlow::enter_asked(Exchange& x) {
  x.at.way = Way::kReturned;
  x.record().replica.clear();
  x.record().deployment = x.asked->deployment->name;
  auto route = renewed(*parts_.routes.read(), *x.asked);
  if (!route) return resolve(x);
  auto dispatcher = parts_.dispatchers.of(*route->deployment);
  if (!dispatcher) return just_replaced(route->deployment->name);
  enter(x, Way::kReturned, {*std::move(route), std::move(dispatcher)});
  return routing::refuses(x.at.route, x.ask.endpoint->path);
}

// Wishes, prefix, estimate and deadlines are those of the deployment that it has come to.
Awaitable<base::MaybeError> RequestFlow::admit_newcomer(Exchange& x) {
  x.at.entered = x.settlement.enter(base::Phase::kAdmit);
  describe(x);
  appraise(x);
  if (const auto dear = x.at.account->reserve_money(x.day_ask())) {
    co_return refused(x, *dear);
  }
  if (x.at.dispatcher->turns_away() && x.has_ladder()) co_await mark_suspect(x);
  base::MaybeError no = admit_to_deployment(x);
  if (!no && !parts_.suspects.empty()) no = co_await admit_suspect(x);
  co_return no;
}

}  // namespace penstock::proxy
