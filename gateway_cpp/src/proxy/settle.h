// The last phase: counts, metrics, the log line and the record of one request, exactly once,
// however it ended. A Settlement belongs to its request and settles in its destructor; its I/O
// thread only.
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
#include "observe/record_sink.h"
#include "proxy/decision.h"
#include "runtime/gateway_state.h"

namespace penstock::proxy {

// What a thread's requests are settled with. All of it outlives them.
struct Settling {
  const base::Clock& clock;
  base::Log& log;
  base::MetricsShard& metrics;
  runtime::GatewayState& state;
  RecordPool& records;
  observe::RecordSink* sink;  // null: nobody reads what was decided
};

class Settlement {
  std::unique_ptr<RequestRecord> kept_;

 public:
  // `received`: when the request had been read.
  Settlement(const Settling& with, base::SteadyTime received);
  ~Settlement();
  Settlement(const Settlement&) = delete;
  Settlement& operator=(const Settlement&) = delete;

  RequestRecord& record;  // its own

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
  // The first answer byte goes out.
  void first_byte();
  // The last byte of a stream has gone out.
  void last_byte();
  // How it ended otherwise than well.
  void failed(const base::Error& error);

  std::chrono::nanoseconds age() const;  // since received
  std::chrono::nanoseconds age(base::SteadyTime now) const { return now - received_; }
  // In the unit of records.
  uint64_t age_us(base::SteadyTime now) const;
  uint64_t age_us() const { return age_us(clock().steady_now()); }
  uint64_t entered_us() const { return age_us(phase_start_); }  // the phase that it is in

 private:
  void count(base::WallTime now);
  base::RequestEnd end(base::WallTime now) const;
  void count_answer(base::DeploymentMetrics& numbers);
  void count_attempts(base::DeploymentMetrics& numbers);
  void count_left();
  const base::Clock& clock() const { return with_.clock; }
  const std::shared_ptr<base::DeploymentMetrics>& deployment();

  const Settling& with_;
  const base::SteadyTime received_;
  base::SteadyTime phase_start_;
  base::Phase phase_ = base::Phase::kParse;
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

uint64_t us_since_epoch(base::WallTime time);

// Who reads records is told of one that is complete.
void hand_on(const RequestRecord& record, observe::RecordSink& sink);

// In a word, with the field at fault: "queue_full", "unsupported_parameter(guided_json)".
std::string cause_of(const base::Error& error);

}  // namespace penstock::proxy
