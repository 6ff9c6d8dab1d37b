// What the metrics page tells besides what requests count.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::base {

// How a deployment in the routes stands now.
struct DeploymentFacts {
  std::string name;
  std::uint32_t queued = 0;
  std::uint32_t broken = 0;                     // answers that wait to go on at another replica
  std::uint32_t moving = 0;                     // likewise, which run on where they are
  std::chrono::milliseconds estimated_wait{0};  // of a request that came now
  std::vector<std::pair<std::string_view, std::uint64_t>> ejections = {};  // by reason, since start
};

// What a tenant's requests have cost since the start.
struct TenantFacts {
  std::string tenant;         // empty: requests without a key
  std::uint64_t limited = 0;  // refused by a limit of its own
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of the prompt tokens
  std::uint64_t cost_nanousd = 0;   // billionths of a US dollar
};

// What became of requests that one rule had repeated, since the start.
struct ShadowFacts {
  std::string rule;
  std::string uid;
  std::uint64_t under_way = 0;  // now
  std::vector<std::pair<std::string_view, std::uint64_t>> outcomes = {};
};

// What one canary's arms have come to at its present step.
struct CanaryFacts {
  struct Arm {
    std::string_view name;
    std::uint64_t sessions = 0;
    std::uint64_t bad_sessions = 0;  // of these
  };
  std::string canary;
  std::vector<Arm> arms = {};
};

// What came of asking one deployment's router programs, since the start.
struct ProgramFacts {
  std::string deployment;
  std::vector<std::pair<std::string_view, std::uint64_t>> outcomes = {};
  std::uint64_t moved_tokens = 0;
  std::uint64_t moved_bytes = 0;
};

// What became of requests that were to be traces, since the start.
struct TraceFacts {
  std::uint64_t sent = 0;
  std::vector<std::pair<std::string_view, std::uint64_t>> dropped = {};  // by reason
};

// What is kept of what was decided about requests.
struct ExplainFacts {
  std::vector<std::pair<std::string_view, std::uint64_t>> kept = {};  // by kind, now
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string_view, std::uint64_t>> dropped = {};  // by reason, since start
};

struct GatewayFacts {
  std::uint64_t snapshot_version = 0;
  bool control_connected = false;
  bool draining = false;
  std::uint64_t request_bytes_held = 0;  // of bodies, until their answers are made
  std::uint64_t answer_bytes_held = 0;   // of whole answers, until they are sent
  std::uint64_t shadow_bytes_held = 0;   // of what shadows were made of, until they are answered
  std::uint64_t resume_bytes_held = 0;   // of what streams would need to go on elsewhere
  std::vector<DeploymentFacts> deployments = {};
  std::vector<TenantFacts> tenants = {};  // the label of its own is not decided yet
  std::vector<ShadowFacts> shadows = {};
  std::vector<CanaryFacts> canaries = {};
  std::vector<ProgramFacts> programs = {};
  TraceFacts traces = {};
  ExplainFacts explain = {};
};

}  // namespace penstock::base
