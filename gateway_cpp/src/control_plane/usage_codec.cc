#include "control_plane/usage_codec.h"

namespace penstock::control_plane {

void add_usage(std::span<const admission::UsageRow> rows, penstock::v1::GatewayReport& report) {
  for (const admission::UsageRow& row : rows) {
    penstock::v1::UsageReport& out = *report.add_usage();
    out.set_tenant(row.key.tenant);
    out.set_key_id(row.key.key_id);
    out.set_deployment(row.key.deployment);
    out.set_adapter(row.key.adapter);
    out.set_requests(row.counts.requests);
    out.set_rejected(row.counts.rejected);
    out.set_prompt_tokens(row.counts.prompt_tokens);
    out.set_completion_tokens(row.counts.completion_tokens);
    out.set_cached_tokens(row.counts.cached_tokens);
    out.set_cost_nanousd(row.counts.cost_nanousd);
  }
}

}  // namespace penstock::control_plane
