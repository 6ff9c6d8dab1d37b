// The metrics page: each metric of the table. Numbers are read as they are written: no lock is held
// that a request may want for longer than its own few rows take to be added up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "admission/canary_book.h"
#include "admission/program_book.h"
#include "admission/shadow_book.h"
#include "admission/usage_counts.h"
#include "base/exposition.h"
#include "base/metrics.h"
#include "dispatch/dispatcher.h"
#include "observe/otlp_sender.h"
#include "observe/record_store.h"

namespace penstock::http {

// What the page tells besides what requests count.
struct GatewayFacts {
  std::uint64_t snapshot_version = 0;
  bool control_connected = false;
  bool draining = false;
  std::uint64_t request_bytes_held = 0;  // of bodies, until their answers are made
  std::uint64_t answer_bytes_held = 0;   // of whole answers, until they are sent
  std::uint64_t shadow_bytes_held = 0;   // of what shadows were made of, until they are answered
  std::uint64_t resume_bytes_held = 0;   // of what streams would need to go on elsewhere
  // Those in the routes.
  std::vector<std::pair<std::string, dispatch::DeploymentStanding>> deployments = {};
  std::map<std::string, admission::UsageCounts> tenants = {};  // by id; empty: without a key
  std::vector<admission::ShadowRow> shadows = {};
  std::vector<admission::CanaryRow> canaries = {};
  std::vector<admission::ProgramRow> programs = {};
  observe::TraceCounts traces = {};
  observe::RecordTotals explain = {};
};

std::string metrics_page(const base::Metrics& metrics, const GatewayFacts& facts,
                         base::TextFormat format = base::TextFormat::kPrometheus);

}  // namespace penstock::http
