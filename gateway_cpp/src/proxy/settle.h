// The last phase: counts, metrics and the access log line of one request, exactly once, however it
// ended. A Settlement belongs to its request and settles in its destructor; its I/O thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "proxy/resumption.h"
#include "runtime/gateway_state.h"

namespace penstock::proxy {

// What is known of a request, filled in as it goes through the phases. Views are of what is the
// request's own as long as it is under way.
struct RequestRecord {
  std::string_view request_id;
  std::string_view client_request_id;  // the caller's own; empty: none
  std::string_view trace_id;           // of the trace that it belongs to
  std::string_view path;               // of the endpoint: its first name, static
  std::string_view tenant;             // whose it is; empty: it came without a key
  std::string_view key_id;             // that it came with; empty: none
  std::string_view client;             // the address that it came from; empty: not to be told
  std::string deployment;              // empty: never resolved
  std::string adapter;                 // "name@version"; empty: base model
  std::string model_version;           // as the replica told it; empty: it did not
  std::string replica;                 // the last one that it was sent to
  std::string error_code;              // empty: none
  std::string drop_reason;             // as the client was told it; empty: admission let it in
  std::string_view degraded;           // why it is not what was asked for, static; empty: it is
  std::string rung;                    // that the answer is owed to: "trim", "fallback:mini-2"
  std::string asked;                   // the deployment that was asked for, where it is degraded
  std::string left;          // who could not answer it, and why: "next=engine_error"; empty: none
  std::string trimmed;       // "messages=3, tokens=812", left out of the prompt; empty: nothing
  std::string_view program;  // what came of its router program, static; empty: none was asked
  std::string legs;          // that the program had engines do, each with what came of it
  std::unique_ptr<Resumption> resumption;  // null: its answer never broke
  std::string_view canary;  // the name of the one that its deployment has; empty: none
  unsigned status = 499;    // what the client saw; 499: it left before
  base::Outcome outcome = base::Outcome::kCancelled;
  bool of_candidate = false;  // its arm, where it is of a canary
  unsigned attempts = 0;
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;
  uint32_t cached_tokens = 0;
  base::Slo slo = {};                           // of its deployment
  std::chrono::nanoseconds queue_wait{0};       // for places, before each attempt
  std::chrono::milliseconds estimated_wait{0};  // as admission estimated it
  std::chrono::nanoseconds engine_ttft{0};      // as the engine says; 0: it does not
  std::chrono::nanoseconds generation{0};       // of a whole stream: first byte to last; 0: none
  // With each event of a stream:
  std::optional<std::chrono::nanoseconds> ttft;  // request read to first answer byte handed over
  std::chrono::nanoseconds silence{0};  // of a stream: the longest between two writes, coarse
  uint64_t events = 0;                  // SSE events handed to the client
  uint64_t bytes = 0;                   // answer bytes handed to the client
};

class Settlement {
 public:
  // `received`: when the request had been read.
  Settlement(const base::Clock& clock, base::Log& log, base::MetricsShard& metrics,
             runtime::GatewayState& state, base::SteadyTime received);
  ~Settlement();
  Settlement(const Settlement&) = delete;
  Settlement& operator=(const Settlement&) = delete;

  RequestRecord record;

  // Ends the phase before. Returns the time, which is then known without another look at the clock.
  base::SteadyTime enter(base::Phase phase);
  // The request is counted in the gateway from here on; how many were there already.
  uint32_t enter_gateway();
  // It may not stay.
  void leave_gateway();
  // Admission said no, and why.
  void dropped(std::string_view reason);
  // Its deployment's metrics count it as in flight from here on.
  const std::shared_ptr<base::DeploymentMetrics>& opening();
  bool is_open() const { return opening_ != nullptr; }
  // It could not be answered there: attempts until now were this deployment's. Where it was sent to
  // one, it counts as ended there, too, unless it ends there after all. `arm`: what could not.
  void left(std::string_view arm, const base::Error& why);
  // Nor is it sent there.
  void passed_over(std::string_view deployment, std::string_view why);
  // The first answer byte goes out.
  void first_byte();
  // The last byte of a stream has gone out.
  void last_byte();
  // How it ended otherwise than well.
  void failed(const base::Error& error);

  std::chrono::nanoseconds age() const;  // since received
  std::chrono::nanoseconds age(base::SteadyTime now) const { return now - received_; }

 private:
  void count(std::chrono::nanoseconds duration);
  base::RequestEnd end(std::chrono::nanoseconds duration) const;
  void count_answer(base::DeploymentMetrics& numbers);
  void count_attempts(base::DeploymentMetrics& numbers);
  void count_left();
  void log_line(std::chrono::nanoseconds duration);
  const std::shared_ptr<base::DeploymentMetrics>& deployment();

  const base::Clock& clock_;
  base::Log& log_;
  base::MetricsShard& metrics_;
  runtime::GatewayState& state_;
  const base::SteadyTime received_;
  base::SteadyTime phase_start_;
  base::Phase phase_ = base::Phase::kParse;
  base::PhaseTimes phases_;
  bool inside_ = false;                               // counted in the gateway
  std::shared_ptr<base::DeploymentMetrics> opening_;  // whose in-flight gauge counts this request
  struct Left {
    std::shared_ptr<base::DeploymentMetrics> metrics;
    base::Outcome outcome;
    unsigned status;
  };
  std::vector<Left> left_;  // that it was sent to, each once
  unsigned elsewhere_ = 0;  // attempts that other deployments have counted
};

// How a request that ended with `error` is counted.
base::Outcome outcome_of(const base::Error& error);

// In a word, with the field at fault: "queue_full", "unsupported_parameter(guided_json)".
std::string cause_of(const base::Error& error);

}  // namespace penstock::proxy
