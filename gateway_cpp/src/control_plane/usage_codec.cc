#include "control_plane/usage_codec.h"

#include <chrono>

namespace penstock::control_plane {
namespace {

base::WallTime from_ms(std::int64_t ms) { return base::WallTime(std::chrono::milliseconds(ms)); }

admission::UsageCounts counts_of(const penstock::v1::UsageReport& row) {
  return {.requests = row.requests(),
          .rejected = row.rejected(),
          .prompt_tokens = row.prompt_tokens(),
          .completion_tokens = row.completion_tokens(),
          .cached_tokens = row.cached_tokens(),
          .cost_nanousd = row.cost_nanousd()};
}

}  // namespace

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

void hear_day(const penstock::v1::GatewayReportReply& reply, admission::DayLedger& day) {
  if (reply.as_of_ms() == 0) return;
  admission::DayNews news{.as_of = from_ms(reply.as_of_ms()),
                          .ends_at = from_ms(reply.day_ends_at_ms()),
                          .whole = reply.whole(),
                          .sums = {}};
  for (const penstock::v1::UsageReport& row : reply.usage()) {
    news.sums.push_back({row.tenant(), row.key_id(), counts_of(row)});
  }
  day.hear(news);
}

}  // namespace penstock::control_plane
