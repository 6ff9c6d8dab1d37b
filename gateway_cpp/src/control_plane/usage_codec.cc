#include "control_plane/usage_codec.h"

#include <span>

namespace penstock::control_plane {
namespace {

admission::UsageCounts counts_of(const v1::UsageReport& row) {
  return {.requests = row.requests(),
          .rejected = row.rejected(),
          .prompt_tokens = row.prompt_tokens(),
          .completion_tokens = row.completion_tokens(),
          .cached_tokens = row.cached_tokens(),
          .cost_nanousd = row.cost_nanousd()};
}

admission::DayShare share_of(const v1::DayHold& hold) {
  admission::DayShare share{.of = {hold.tenant(), hold.key_id(), hold.deployment()},
                            .used = {},
                            .reserved = {hold.reserved_tokens(), hold.reserved_nanousd()}};
  if (hold.has_used_tokens()) share.used = {hold.used_tokens(), hold.used_nanousd()};
  return share;
}

void add_rows(std::span<const admission::UsageRow> rows, v1::GatewayReport& report) {
  for (const admission::UsageRow& row : rows) {
    v1::UsageReport& out = *report.add_usage();
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

void add_holds(std::span<const admission::DayHold> holds, v1::GatewayReport& report) {
  for (const admission::DayHold& hold : holds) {
    v1::DayHold& out = *report.add_holds();
    out.set_tenant(hold.of.tenant);
    out.set_key_id(hold.of.key_id);
    out.set_deployment(hold.of.deployment);
    out.set_used_tokens(hold.used.tokens);
    out.set_used_nanousd(hold.used.nanousd);
    out.set_reserved_tokens(hold.reserved.tokens);
    out.set_reserved_nanousd(hold.reserved.nanousd);
  }
}

}  // namespace

void add_usage(admission::UsageBook& book, v1::GatewayReport& report) {
  add_holds(book.day().holds(), report);
  const admission::UsageNews news = book.news();
  report.set_number(news.number);
  add_rows(news.rows, report);
}

void hear_usage(const v1::GatewayReportReply& reply, admission::UsageBook& book) {
  if (reply.as_of_ms() == 0) return;
  if (reply.whole()) book.tell_all();
  book.stored(reply.stored());
  admission::DayNews news{.as_of = base::from_unix_ms(reply.as_of_ms()),
                          .ends_at = base::from_unix_ms(reply.day_ends_at_ms()),
                          .whole = reply.whole(),
                          .sums = {},
                          .spent = {},
                          .shares = {}};
  for (const v1::UsageReport& row : reply.usage()) {
    news.sums.push_back({row.tenant(), row.key_id(), counts_of(row)});
  }
  for (const v1::UsageReport& row : reply.spent()) {
    news.spent.push_back({row.deployment(), counts_of(row)});
  }
  for (const v1::DayHold& hold : reply.holds()) news.shares.push_back(share_of(hold));
  book.day().hear(news);
}

}  // namespace penstock::control_plane
