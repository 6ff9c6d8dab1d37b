// What failures mean: for the replica, for the request, and for what the client is told.
#include <algorithm>
#include <chrono>
#include <string>

#include "proxy/exchange.h"
#include "proxy/request_flow.h"
#include "proxy/upstream_error.h"

namespace penstock::proxy {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kRestart{10};  // of an engine, where nobody knows better

}  // namespace

base::Error stop_error(Stop stop) {
  if (stop == Stop::kDraining) {
    auto error = base::make_error(base::Kind::kDraining,
                                  "This gateway is shutting down and had no time to finish the "
                                  "answer. Send the request again.");
    error.retry_after = seconds(1);
    return error;
  }
  if (stop == Stop::kKeyRevoked) {
    return base::make_error(base::Kind::kKeyRevoked,
                            "This API key was revoked while its request was under way, which was "
                            "ended with it. Ask the operator for another.");
  }
  if (stop == Stop::kClientSlow) {
    return base::make_error(base::Kind::kClientSlow,
                            "The client did not take the answer in time. Read it faster, or ask "
                            "for less.");
  }
  return base::make_error(base::Kind::kClientGone, "the client closed the connection");
}

Awaitable<Next> RequestFlow::note_failure(Exchange& x) {
  const upstream::CallFailure& failure = x.attempts.call().failure();
  if (const auto against = blame_of(failure)) blame(x, *against, failure.error.message());
  const Next next = x.attempts.after(failure, !x.at.route.deployment->managed);
  const bool lost = failure.source == upstream::CallFailure::Source::kLost;
  const bool guilty = engine_died_with(failure) ||
                      (lost && (x.attempts.failover().is_deadly() || x.danger.suspect));
  if (!guilty || x.at.route.deployment->managed) co_return next;
  x.danger.guilty = true;
  co_await know_fingerprint(x);
  if (x.danger.fingerprint) suspect(x);
  co_return Next::kGiveUp;
}

void RequestFlow::blame(Exchange& x, routing::Failure failure, std::string_view error) {
  const Target& target = x.attempts.now().target();
  const auto doubt = x.at.dispatcher->note_failure(*target.replica, failure);
  if (doubt.count() == 0) return;
  parts_.log.warning("replica marked down", {{"request_id", x.ask.request_id},
                                             {"replica_id", target.id},
                                             {"for_ms", doubt.count()},
                                             {"error", error}});
}

// The request was on board when engines died: all gateways are to know it.
void RequestFlow::suspect(Exchange& x) {
  const routing::DeploymentRoute& route = *x.at.route.deployment;
  admission::Suspect suspect{.fingerprint = *x.danger.fingerprint,
                             .deployment = route.name,
                             .deployment_uid = route.uid,
                             .path = std::string(x.ask.endpoint->path),
                             .deaths = x.attempts.failover().deaths(),
                             .until = {}};
  parts_.log.warning("a request was aboard an engine that died",
                     {{"request_id", x.ask.request_id},
                      {"fingerprint", suspect.fingerprint.hex()},
                      {"deployment", route.name},
                      {"replica_id", x.record().replica},
                      {"deaths", suspect.deaths.size()}});
  parts_.suspects.died(std::move(suspect), parts_.clock.wall_now());
}

base::Error RequestFlow::failure_error(const Exchange& x) {
  const upstream::CallFailure& failure = x.attempts.call().failure();
  auto error = engine_died_with(failure)
                   ? base::make_error(base::Kind::kEngineDead, failure.error.message())
                   : to_error(failure.error);
  error.quotes = failure.source == upstream::CallFailure::Source::kReplica;
  if (!engine_died(failure)) return error;
  error.code = "engine_dead";  // clients need not know how
  error.retry_after = back_in(x);
  return error;
}

// Until a request to the deployment may be answered again.
milliseconds RequestFlow::back_in(const Exchange& x) {
  if (x.at.dispatcher->another_is_usable({x.attempts.now().target().id})) return seconds(1);
  const auto& deployments = parts_.routes.read()->deployments();
  const auto found = deployments.find(x.settlement.record.deployment());
  if (found != deployments.end()) {
    const auto wait = found->second->expected_ready_at - parts_.clock.wall_now();
    if (wait.count() > 0) return std::chrono::ceil<milliseconds>(wait);
  }
  const milliseconds told(x.attempts.call().failure().error.retry_after_ms());
  return told.count() > 0 ? told : kRestart;
}

// Why an answer that has come to its end is not a whole one.
base::MaybeError RequestFlow::fault_of_end(const Exchange& x) {
  if (x.attempts.call().failed()) return failure_error(x);
  return fault_of(x.attempts.call().outcome(), x.settlement.record.adapter(), x.at.route.digest());
}

// The replica let its time go by.
base::Error RequestFlow::deadline_error(Exchange& x) {
  blame(x, routing::Failure::kNoFirstEvent, "it did not answer in time");
  const auto text = [](std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(time).count());
  };
  const bool begun = x.attempts.call().has_head() || x.attempts.call().has_bytes();
  return base::make_error(
      base::Kind::kDeadlineExceeded,
      begun ? "the replica sent nothing for " + text(x.delivery.since_heard(parts_.timers.now())) +
                  " ms, and the answer is not complete. Send the request again."
            : "no replica began to answer within " + text(parts_.clock.steady_now() - x.sent) +
                  " ms. Send the request again later.");
}

}  // namespace penstock::proxy
