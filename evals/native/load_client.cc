#include "load_client.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

namespace penstock::evals {
namespace {

// A target that only fails would be asked again as fast as the loop turns.
constexpr uint64_t kMaxFailures = 1'000;

constexpr std::chrono::seconds kStartDeadline{30};  // until every connection has its first event

}  // namespace

LoadClient::LoadClient(LoadOptions options)
    : options_(std::move(options)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  for (const auto& [name, pid] : options_.watched) {
    report_.processes.push_back({name, pid, -1, -1, memory_of(pid), {}});
  }
}

LoadReport LoadClient::run() {
  began_ = Clock::now();
  phase_ends_ = began_ + kStartDeadline;
  while (phase_ != Phase::kOver) {
    open_due(Clock::now());
    dispatch(all_opened() ? 10 : 1);
    advance(Clock::now());
  }
  report_.counts.failed_requests = tally_.counts.failed_requests;
  report_.counts.stream_errors = tally_.counts.stream_errors;
  report_.counts.truncated = tally_.counts.truncated;
  report_.problem = tally_.first_problem;
  return report_;
}

void LoadClient::open_due(Clock::time_point now) {
  const std::chrono::duration<double> passed = now - began_;
  const auto rate = double(options_.connects_per_second);
  const auto due = std::min(options_.connections, size_t(passed.count() * rate) + 1);
  while (connections_.size() < due) {
    connections_.emplace_back(epoll_.get(), uint32_t(connections_.size()), options_.target, tally_)
        .open();
  }
}

void LoadClient::dispatch(int timeout_ms) {
  std::array<epoll_event, 512> ready;
  const int count = ::epoll_wait(epoll_.get(), ready.data(), int(ready.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    connections_[ready[size_t(i)].data.u32].on_ready(ready[size_t(i)].events);
  }
}

void LoadClient::advance(Clock::time_point now) {
  if (phase_ == Phase::kMeasuring) {
    if (window_is_over(now)) end_window(now);
  } else if (stopped_ || tally_.counts.failures() >= kMaxFailures) {
    tally_.note_problem("stopped before the window");
    phase_ = Phase::kOver;
  } else if (phase_ == Phase::kStarting && tally_.started == options_.connections) {
    phase_ = Phase::kWarming;
    phase_ends_ = now + options_.warmup;
  } else if (phase_ == Phase::kStarting && now >= phase_ends_) {
    tally_.note_problem("only " + std::to_string(tally_.started) + " of " +
                        std::to_string(options_.connections) + " connections got an event in time");
    phase_ = Phase::kOver;
  } else if (phase_ == Phase::kWarming && now >= phase_ends_) {
    begin_window(now);
  }
}

bool LoadClient::window_is_over(Clock::time_point now) const {
  const uint64_t answers = tally_.counts.answers - at_window_begin_.answers;
  const bool enough = options_.requests > 0 && answers >= options_.requests;
  return enough || stopped_ || now >= phase_ends_ || tally_.counts.failures() >= kMaxFailures;
}

void LoadClient::begin_window(Clock::time_point now) {
  phase_ = Phase::kMeasuring;
  window_began_ = now;
  phase_ends_ = now + options_.window;
  at_window_begin_ = tally_.counts;
  if (!options_.first_events_from_start) tally_.first_event_ns.clear();
  tally_.gap_ns.clear();
  tally_.answer_ns.clear();
  for (WatchedProcess& process : report_.processes) {
    process.cpu_at_begin_ns = cpu_nanoseconds(process.pid);
  }
  options_.on_window();
}

void LoadClient::end_window(Clock::time_point now) {
  for (WatchedProcess& process : report_.processes) {
    const int64_t spent = cpu_nanoseconds(process.pid);
    const bool known = spent >= 0 && process.cpu_at_begin_ns >= 0;
    process.cpu_ns = known ? spent - process.cpu_at_begin_ns : -1;
  }
  for (WatchedProcess& process : report_.processes) process.at_end = memory_of(process.pid);
  phase_ = Phase::kOver;
  report_.seconds = std::chrono::duration<double>(now - window_began_).count();
  report_.counts.events = tally_.counts.events - at_window_begin_.events;
  report_.counts.answers = tally_.counts.answers - at_window_begin_.answers;
  report_.longest_silence = longest_silence(now);
}

std::chrono::nanoseconds LoadClient::longest_silence(Clock::time_point now) const {
  std::chrono::nanoseconds longest(tally_.gap_ns.max());
  for (const Connection& each : connections_) {
    longest = std::max(longest, std::chrono::nanoseconds(each.silence(now)));
  }
  return longest;
}

}  // namespace penstock::evals
