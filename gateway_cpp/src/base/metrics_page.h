// The metrics page: Prometheus text format 0.0.4, names penstock_gateway_*. Numbers are read as
// they are written: no lock is held that a request may want.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "base/gateway_facts.h"
#include "base/metrics.h"

namespace penstock::base {

std::string metrics_page(const std::map<std::string, Metrics::Parts, std::less<>>& deployments,
                         std::span<const MetricsShard* const> shards, const GatewayFacts& facts);

}  // namespace penstock::base
