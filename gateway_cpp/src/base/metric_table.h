// Every metric that the gateway tells, declared once. docs/reference/metrics.md is made from this
// file (.venv/bin/python -m tests.architecture.metrics_reference), and what a running gateway tells
// is held against it: a new one is a row here, and a page or a sum that names the row.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::base {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

// One family. No label has values that a client can make up.
struct Metric {
  std::string_view name;
  MetricType type;
  std::string_view labels;  // in their order, ", " between; empty: none
  std::string_view unit;    // what a value counts
  std::string_view help;    // for the page and the docs
};

namespace metric {

inline constexpr auto kCounter = MetricType::kCounter;
inline constexpr auto kGauge = MetricType::kGauge;
inline constexpr auto kHistogram = MetricType::kHistogram;

// ---- how requests end

inline constexpr Metric kRequests{
    "penstock_gateway_requests_total", kCounter, "deployment, outcome, code", "requests",
    "Requests settled, by outcome and HTTP status; one that was moved counts where it failed, "
    "too."};
inline constexpr Metric kDrops{"penstock_gateway_drops_total", kCounter, "deployment, reason",
                               "requests", "Requests refused or given up in the queue, by reason."};
inline constexpr Metric kDegraded{
    "penstock_gateway_degraded_total", kCounter, "deployment, reason, rung", "requests",
    "Answers owed to a rung of the deployment's ladder, by reason and rung."};
inline constexpr Metric kResumes{
    "penstock_gateway_resumes_total", kCounter, "deployment, reason, outcome", "requests",
    "Answers that broke or were handed over, by reason and what came of it."};
inline constexpr Metric kKeysRefused{"penstock_gateway_keys_refused_total", kCounter, "",
                                     "requests", "Requests without a key that is known and good."};
inline constexpr Metric kBadRequests{"penstock_gateway_bad_requests_total", kCounter, "",
                                     "requests", "HTTP requests that could not be read."};
inline constexpr Metric kBrokenRequests{"penstock_gateway_broken_requests_total", kCounter, "",
                                        "requests",
                                        "Requests that ended by a fault of the gateway's own."};
inline constexpr Metric kResumeNoRoom{
    "penstock_gateway_resume_no_room_total", kCounter, "", "requests",
    "Streams that ran on without what they need to go on elsewhere: no room for it."};

// ---- how long they take. The names of the GenAI conventions, where these have one.

inline constexpr Metric kRequestDuration{
    "gen_ai_server_request_duration_seconds", kHistogram,
    "deployment, outcome, gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model, "
    "error_type",
    "seconds", "Request read to settled."};
inline constexpr Metric kTimeToFirstToken{
    "gen_ai_server_time_to_first_token_seconds", kHistogram,
    "deployment, outcome, gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model, "
    "error_type",
    "seconds", "Request read to first answer byte."};
inline constexpr Metric kTimePerOutputToken{
    "gen_ai_server_time_per_output_token_seconds", kHistogram,
    "deployment, outcome, gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model, "
    "error_type",
    "seconds", "Of whole streams: mean time for each token after the first."};
inline constexpr Metric kQueueWait{"penstock_gateway_queue_wait_seconds", kHistogram,
                                   "deployment, outcome", "seconds",
                                   "Waits for places at replicas, of one request together."};
inline constexpr Metric kPhase{"penstock_gateway_phase_seconds", kHistogram,
                               "deployment, outcome, phase", "seconds",
                               "Time in each phase of a request."};
inline constexpr Metric kEngineTtft{"penstock_gateway_engine_ttft_seconds", kHistogram,
                                    "deployment", "seconds",
                                    "Accepted by the engine to its first token, as it reports."};
inline constexpr Metric kEstimateError{"penstock_gateway_wait_estimate_error_ratio", kHistogram,
                                       "deployment", "ratio",
                                       "Of waits over 100 ms: |estimated - real| / real."};
inline constexpr Metric kSilence{"penstock_gateway_stream_silence_seconds", kHistogram,
                                 "deployment", "seconds",
                                 "Of whole streams: longest time between two writes, to 50 ms."};
inline constexpr Metric kResumePause{
    "penstock_gateway_resume_pause_seconds", kHistogram, "deployment", "seconds",
    "Of answers that went on at another replica: broken to their next event."};
inline constexpr Metric kGeneration{"penstock_gateway_generation_seconds", kHistogram, "deployment",
                                    "seconds", "Of whole streams: first byte to last."};
inline constexpr Metric kProgram{
    "penstock_gateway_program_seconds", kHistogram, "deployment", "seconds",
    "A router program was asked to its answer, engine calls included."};
inline constexpr Metric kEngineCall{"penstock_gateway_engine_call_seconds", kHistogram,
                                    "deployment", "seconds",
                                    "Engine calls of a router program, begun to answered."};

// ---- what they are made of

inline constexpr Metric kEvents{"penstock_gateway_events_total", kCounter, "deployment", "events",
                                "SSE events written to clients."};
inline constexpr Metric kAnswerBytes{"penstock_gateway_answer_bytes_total", kCounter, "deployment",
                                     "bytes", "Answer bytes written to clients."};
inline constexpr Metric kAttempts{"penstock_gateway_attempts_total", kCounter, "deployment",
                                  "calls", "Calls sent to replicas."};
inline constexpr Metric kFailovers{"penstock_gateway_failovers_total", kCounter, "deployment",
                                   "calls", "Further replicas tried before the first byte."};
inline constexpr Metric kPromptTokens{"penstock_gateway_prompt_tokens_total", kCounter,
                                      "deployment", "tokens",
                                      "Prompt tokens, as replicas report them."};
inline constexpr Metric kCompletionTokens{"penstock_gateway_completion_tokens_total", kCounter,
                                          "deployment", "tokens",
                                          "Generated tokens, as replicas report them."};
inline constexpr Metric kCachedTokens{"penstock_gateway_cached_tokens_total", kCounter,
                                      "deployment", "tokens",
                                      "Prompt tokens that replicas found in their caches."};
inline constexpr Metric kPrefixHits{"penstock_gateway_prefix_hits_total", kCounter, "deployment",
                                    "requests", "Answers whose prompt began in a replica's cache."};

// ---- how deployments stand

inline constexpr Metric kInFlight{"penstock_gateway_in_flight", kGauge, "deployment", "requests",
                                  "Requests opened and not settled."};
inline constexpr Metric kQueuedNow{"penstock_gateway_queued", kGauge, "deployment", "requests",
                                   "Requests that wait for a place."};
inline constexpr Metric kToGoOn{
    "penstock_gateway_to_go_on", kGauge, "deployment, state", "requests",
    "Answers that wait for a place at another replica: broken ones, and those that run on "
    "meanwhile."};
inline constexpr Metric kEstimatedWait{"penstock_gateway_estimated_wait_seconds", kGauge,
                                       "deployment", "seconds",
                                       "How long a request that came now would wait."};
inline constexpr Metric kEjections{
    "penstock_gateway_ejections_total", kCounter, "deployment, reason", "times",
    "Times that a replica was sent nothing more for a while, by reason."};

// ---- by tenant: the first 200 that ask, the others together as "_other"

inline constexpr Metric kTenantRequests{"penstock_gateway_tenant_requests_total", kCounter,
                                        "tenant, outcome", "requests",
                                        "Requests settled, by tenant and outcome."};
inline constexpr Metric kTenantLimited{"penstock_gateway_tenant_limited_total", kCounter, "tenant",
                                       "requests",
                                       "Requests refused by a limit of their tenant or key."};
inline constexpr Metric kTenantPromptTokens{"penstock_gateway_tenant_prompt_tokens_total", kCounter,
                                            "tenant", "tokens",
                                            "Prompt tokens, as replicas report them."};
inline constexpr Metric kTenantCompletionTokens{"penstock_gateway_tenant_completion_tokens_total",
                                                kCounter, "tenant", "tokens",
                                                "Completion tokens, likewise."};
inline constexpr Metric kTenantCachedTokens{"penstock_gateway_tenant_cached_tokens_total", kCounter,
                                            "tenant", "tokens",
                                            "Prompt tokens that replicas found in their caches."};
inline constexpr Metric kTenantCost{"penstock_gateway_tenant_cost_usd_total", kCounter, "tenant",
                                    "US dollars", "What requests cost, where models have prices."};

// ---- shadows, canaries, router programs

inline constexpr Metric kShadowRequests{
    "penstock_gateway_shadow_requests_total", kCounter, "rule, uid, outcome", "requests",
    "Shadows of sampled requests, by rule and by what became of them."};
inline constexpr Metric kShadowInFlight{"penstock_gateway_shadow_in_flight", kGauge, "rule, uid",
                                        "requests", "Shadows that wait for a place or have one."};
inline constexpr Metric kCanarySessions{
    "penstock_gateway_canary_sessions_total", kCounter, "canary, arm", "sessions",
    "Sessions of canaries' arms, at the step that is judged."};
inline constexpr Metric kCanaryBadSessions{
    "penstock_gateway_canary_bad_sessions_total", kCounter, "canary, arm", "sessions",
    "Of canaries' sessions, those with a request that broke."};
inline constexpr Metric kProgramAsks{
    "penstock_gateway_program_asks_total", kCounter, "deployment, outcome", "requests",
    "Requests that a router program was asked about, by what came of it."};
inline constexpr Metric kProgramMovedTokens{
    "penstock_gateway_program_moved_tokens_total", kCounter, "deployment", "tokens",
    "Tokens whose KV router programs have moved between engines."};
inline constexpr Metric kProgramMovedBytes{"penstock_gateway_program_moved_bytes_total", kCounter,
                                           "deployment", "bytes", "Bytes of that KV."};

// ---- its doors, and itself

inline constexpr Metric kConnections{"penstock_gateway_connections", kGauge, "", "connections",
                                     "Open client connections."};
inline constexpr Metric kConnectionsAccepted{"penstock_gateway_connections_accepted_total",
                                             kCounter, "", "connections",
                                             "Client connections accepted."};
inline constexpr Metric kConnectionsRefused{"penstock_gateway_connections_refused_total", kCounter,
                                            "", "connections",
                                            "Client connections closed at the limit."};
inline constexpr Metric kConnectionsEvicted{
    "penstock_gateway_connections_evicted_total", kCounter, "", "connections",
    "Client connections without a request that gave way to others at the limit."};
inline constexpr Metric kTlsHandshakes{"penstock_gateway_tls_handshakes_total", kCounter, "",
                                       "handshakes",
                                       "TLS handshakes that came to an end, good or bad."};
inline constexpr Metric kTlsHandshakesFailed{
    "penstock_gateway_tls_handshakes_failed_total", kCounter, "", "handshakes",
    "TLS handshakes that failed, or whose client left, took too long or spoke plain HTTP."};
inline constexpr Metric kHeartbeats{"penstock_gateway_heartbeats_total", kCounter, "", "comments",
                                    "SSE comments written in silence."};
inline constexpr Metric kSentBytes{"penstock_gateway_sent_bytes_total", kCounter, "", "bytes",
                                   "Answer bytes written to clients, of all deployments."};
inline constexpr Metric kSessions{"penstock_gateway_sessions", kGauge, "", "sessions",
                                  "Open sessions to replicas."};
inline constexpr Metric kHeldBytes{"penstock_gateway_held_bytes", kGauge, "of", "bytes",
                                   "Bytes held, by what they are of."};
inline constexpr Metric kSnapshotVersion{"penstock_gateway_snapshot_version", kGauge, "", "version",
                                         "Version of the route snapshot in force."};
inline constexpr Metric kControlConnected{"penstock_gateway_control_connected", kGauge, "",
                                          "yes or no",
                                          "1 while the stream of route snapshots is open."};
inline constexpr Metric kDraining{"penstock_gateway_draining", kGauge, "", "yes or no",
                                  "1 after SIGTERM."};
inline constexpr Metric kBuildInfo{"penstock_gateway_build_info", kGauge, "version", "yes or no",
                                   "Always 1; the label says which version runs."};

}  // namespace metric
}  // namespace penstock::base
