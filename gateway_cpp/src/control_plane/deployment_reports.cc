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
  }
}

}  // namespace penstock::control_plane
