#include "control_plane/tenant_codec.h"

#include <algorithm>
#include <utility>

namespace penstock::control_plane {
namespace {

// A class that a newer head may know is normal.
base::Priority priority_from(penstock::v1::PriorityClass priority) {
  switch (priority) {
    case penstock::v1::PRIORITY_CLASS_LOW:
      return base::Priority::kLow;
    case penstock::v1::PRIORITY_CLASS_HIGH:
      return base::Priority::kHigh;
    default:
      return base::Priority::kNormal;
  }
}

admission::TenantLimits limits_from(const penstock::v1::Tenant& wire) {
  return {.requests_per_minute = wire.requests_per_minute(),
          .tokens_per_minute = wire.tokens_per_minute(),
          .max_streams = wire.max_streams(),
          .share_permille = wire.share_permille(),
          .max_streams_here = wire.max_streams_here(),
          .per_day = {wire.tokens_per_day(), wire.nanousd_per_day()},
          .quota_used_up = wire.quota_used_up(),
          .quota_resets_at = base::from_unix_ms(wire.quota_resets_at_ms())};
}

admission::Tenant tenant_from(const penstock::v1::Tenant& wire) {
  admission::Tenant tenant{.id = wire.id(),
                           .limits = limits_from(wire),
                           .models = {wire.models().begin(), wire.models().end()},
                           .adapters = {wire.adapters().begin(), wire.adapters().end()},
                           .priority = priority_from(wire.priority()),
                           .cache_salt = wire.cache_salt(),
                           .degrade_never = wire.degrade_never(),
                           .fallbacks_listed = wire.fallbacks_listed(),
                           .shadow_never = wire.shadow_never(),
                           .keys = {}};
  for (const auto& key : wire.keys()) {
    admission::ApiKey out{.id = key.id(),
                          .expires_at = base::from_unix_ms(key.expires_at_ms()),
                          .per_day = {key.tokens_per_day(), key.nanousd_per_day()}};
    if (key.sha256().size() != out.sha256.size()) continue;
    std::copy(key.sha256().begin(), key.sha256().end(), out.sha256.begin());
    tenant.keys.push_back(std::move(out));
  }
  return tenant;
}

}  // namespace

std::vector<admission::Tenant> tenants_of(const penstock::v1::RouteSnapshot& snapshot) {
  std::vector<admission::Tenant> tenants;
  for (const auto& wire : snapshot.tenants()) {
    if (!wire.id().empty()) tenants.push_back(tenant_from(wire));
  }
  return tenants;
}

void add_streams(const admission::Tenants& tenants, penstock::v1::GatewayReport& report) {
  for (const admission::TenantStreams& streams : tenants.limited_streams()) {
    penstock::v1::TenantStreams& out = *report.add_streams();
    out.set_tenant(streams.tenant);
    out.set_under_way(streams.under_way);
  }
}

}  // namespace penstock::control_plane
