#include "control_plane/deployment_reports.h"

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

}  // namespace penstock::control_plane
