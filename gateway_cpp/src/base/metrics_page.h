// The metrics page: each metric of the table. Numbers are read as they are written: no lock is held
// that a request may want for longer than its own few rows take to be added up.
#pragma once

#include <span>
#include <string>

#include "base/exposition.h"
#include "base/gateway_facts.h"
#include "base/metrics.h"

namespace penstock::base {

std::string metrics_page(const Metrics::Deployments& deployments,
                         std::span<const MetricsShard* const> shards, const GatewayFacts& facts,
                         TextFormat format);

}  // namespace penstock::base
