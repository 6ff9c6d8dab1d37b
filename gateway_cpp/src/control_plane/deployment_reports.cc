#include "control_plane/deployment_reports.h"

#include <map>
#include <string_view>

namespace penstock::control_plane {

void add_deployments(std::span<const base::DeploymentTotals> totals,
                     penstock::v1::GatewayReport& report) {
  for (const base::DeploymentTotals& total : totals) {
    penstock::v1::DeploymentReport& out = *report.add_deployments();
    out.set_deployment(total.deployment);
    out.set_in_flight(static_cast<std::uint32_t>(total.in_flight));
    out.set_requests(total.requests);
    out.set_succeeded(total.succeeded);
    out.set_failed(total.failed);
    out.set_rejected(total.rejected);
    out.set_cancelled(total.cancelled);
    out.set_prompt_tokens(total.prompt_tokens);
    out.set_completion_tokens(total.completion_tokens);
    out.set_ttft_us_sum(static_cast<std::uint64_t>(total.ttft_sum.count()));
    out.set_queue_wait_us_sum(static_cast<std::uint64_t>(total.queue_wait_sum.count()));
    out.set_sent(total.sent);
    out.set_resumed(total.resumed);
    out.set_not_resumed(total.not_resumed);
    for (std::size_t i = 0; i < base::kObjectives; ++i) {
      if (total.slo[i].requests == 0) continue;
      penstock::v1::SloReport& one = *out.add_slo();
      one.set_objective(std::string(name(static_cast<base::Objective>(i))));
      one.set_requests(total.slo[i].requests);
      one.set_bad(total.slo[i].bad);
    }
  }
}

namespace {

penstock::v1::DeploymentReport& report_of(const std::string& deployment,
                                          penstock::v1::GatewayReport& report) {
  for (auto& known : *report.mutable_deployments()) {
    if (known.deployment() == deployment) return known;
  }
  auto& made = *report.add_deployments();
  made.set_deployment(deployment);
  return made;
}

void add_doubts(const dispatch::Dispatcher& dispatcher, penstock::v1::GatewayReport& report) {
  for (const auto& doubt : dispatcher.doubts()) {
    auto& out = *report.add_doubts();
    out.set_replica_id(doubt.replica.value);
    out.set_reason(std::string(doubt.reason));
    out.set_for_ms(static_cast<std::uint32_t>(doubt.left.count()));
  }
}

void add_program_counts(const admission::ProgramRow& row, penstock::v1::ProgramReport& out) {
  using Outcome = admission::ProgramOutcome;
  std::map<std::string_view, std::size_t> failures;  // sorted by reason
  for (std::size_t i = 0; i < row.counts.size(); ++i) {
    const auto outcome = static_cast<Outcome>(i);
    const bool is_failure = admission::is_fault(outcome) || outcome == Outcome::kNoPlace;
    if (is_failure && row.counts[i] > 0) failures.emplace(name(outcome), i);
  }
  const auto count = [&row](Outcome outcome) {
    return row.counts[static_cast<std::size_t>(outcome)];
  };
  out.set_decided(count(Outcome::kDecided) + count(Outcome::kLeft));
  for (const auto& [reason, i] : failures) {
    auto& failure = *out.add_failures();
    failure.set_reason(std::string(reason));
    failure.set_count(row.counts[i]);
    failure.set_last(row.last[i]);
  }
}

template <class Reason, std::size_t kReasons>
void add_counts(const std::array<std::uint64_t, kReasons>& counts,
                google::protobuf::RepeatedPtrField<penstock::v1::CanaryCount>& out) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    penstock::v1::CanaryCount& one = *out.Add();
    one.set_reason(std::string(name(static_cast<Reason>(i))));
    one.set_count(counts[i]);
  }
}

void add_times(const admission::CanaryTimes& times, penstock::v1::CanaryTimes& out) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] == 0) continue;
    out.add_bins(static_cast<std::uint32_t>(i));
    out.add_counts(times[i]);
  }
}

void add_arm(const admission::CanaryCounts& counts, penstock::v1::CanaryArm& out) {
  out.set_sessions(counts.sessions);
  out.set_bad_sessions(counts.bad_sessions);
  add_counts<admission::CanaryFault>(counts.errors, *out.mutable_errors());
  out.set_answered_sessions(counts.answered_sessions);
  out.set_bad_finishes(counts.bad_finishes);
  add_times(counts.ttft, *out.mutable_ttft());
  add_times(counts.between_tokens, *out.mutable_between_tokens());
  add_times(counts.total, *out.mutable_total());
  out.set_requests(counts.requests);
  add_counts<admission::CanaryFinish>(counts.finishes, *out.mutable_finishes());
  out.set_prompt_tokens(counts.prompt_tokens);
  out.set_completion_tokens(counts.completion_tokens);
  out.set_saved(counts.saved);
  out.set_saved_sessions(counts.saved_sessions);
  out.set_refused(counts.refused);
}

}  // namespace

void add_standings(const routing::Routes& routes, const dispatch::Dispatchers::ByUid& dispatchers,
                   penstock::v1::GatewayReport& report) {
  for (const auto& [name, route] : routes.deployments()) {
    const auto found = dispatchers.find(dispatch::key_of(*route));
    if (found == dispatchers.end()) continue;
    add_doubts(*found->second, report);
    const auto standing = found->second->standing();
    if (standing.queued == 0 && standing.estimated_wait.count() == 0) continue;
    auto& out = report_of(name, report);
    out.set_queued(standing.queued);
    out.set_estimated_wait_ms(static_cast<std::uint32_t>(standing.estimated_wait.count()));
  }
}

std::string why_not_asked(const routing::DeploymentRoute& route, const ProgramFacts& facts) {
  if (!route.program) return {};
  const std::string& uid = dispatch::key_of(route);
  const auto seat = facts.directory.find(uid);
  if (!seat) return "no process of router programs runs beside this gateway";
  if (!seat->runs(route.program->digest)) return "the process beside this gateway runs another one";
  const std::string fault = facts.book.row(uid, facts.now).paused_by;
  return fault.empty() ? fault : "it failed three times in a row, the last time " + fault;
}

void add_programs(const routing::Routes& routes, const ProgramFacts& facts,
                  penstock::v1::GatewayReport& report) {
  for (const auto& [name, route] : routes.deployments()) {
    if (!route->program) continue;
    const admission::ProgramRow row = facts.book.row(dispatch::key_of(*route), facts.now);
    auto& out = *report_of(name, report).mutable_program();
    out.set_digest(route->program->digest);
    out.set_unavailable(why_not_asked(*route, facts));
    out.set_asked(row.asked);
    out.set_moved_tokens(row.moved_tokens);
    out.set_moved_bytes(row.moved_bytes);
    add_program_counts(row, out);
  }
}

void add_canaries(std::span<const admission::CanaryRow> rows, penstock::v1::GatewayReport& report) {
  for (const admission::CanaryRow& row : rows) {
    penstock::v1::CanaryReport& out = *report.add_canaries();
    out.set_uid(row.uid);
    out.set_step(row.step);
    add_arm(row.stable, *out.mutable_stable());
    add_arm(row.candidate, *out.mutable_candidate());
  }
}

}  // namespace penstock::control_plane
