// The load: opens connections at a steady rate, waits until each has its first event, warms up,
// measures for a window, reports. Single thread, epoll. It shares the machine with what it
// measures, so it does little per event and reports its own CPU beside the others'.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "descriptor.h"
#include "process_figures.h"
#include "tally.h"

namespace penstock::evals {

struct LoadOptions {
  Target target;
  size_t connections = 1;
  size_t connects_per_second = 4000;
  uint64_t requests = 0;  // ends the window early after this many answers; 0: never
  std::chrono::milliseconds warmup{1'000};
  std::chrono::milliseconds window{4'000};
  // Streams that outlive the window begin before it; their first events count from the start.
  bool first_events_from_start = false;
  std::vector<std::pair<std::string, pid_t>> watched;
  std::function<void()> on_window = [] {};  // called when the window begins
};

struct WatchedProcess {
  std::string name;
  pid_t pid = 0;
  int64_t cpu_at_begin_ns = -1;
  int64_t cpu_ns = -1;  // spent within the window; -1 when the process was not there all the time
  Memory before;        // when no connection was open
  Memory at_end;        // of the window, with all connections open
};

struct LoadReport {
  double seconds = 0;
  Counts counts;        // within the window, except failures: those of the whole run
  std::string problem;  // the first one, empty if none
  // The longest that any stream was without an event within the window, or is at its end.
  std::chrono::nanoseconds longest_silence{0};
  std::vector<WatchedProcess> processes;
};

class LoadClient {
 public:
  explicit LoadClient(LoadOptions options);

  // Returns when the window is over, or earlier when nothing but failures comes.
  LoadReport run();
  // Ends the window now. From any thread and from signal handlers.
  void stop() { stopped_ = true; }
  const Tally& tally() const { return tally_; }

 private:
  enum class Phase { kStarting, kWarming, kMeasuring, kOver };

  void open_due(Clock::time_point now);
  void dispatch(int timeout_ms);
  void advance(Clock::time_point now);
  void begin_window(Clock::time_point now);
  void end_window(Clock::time_point now);
  std::chrono::nanoseconds longest_silence(Clock::time_point now) const;
  bool all_opened() const { return connections_.size() == options_.connections; }
  bool window_is_over(Clock::time_point now) const;

  LoadOptions options_;
  Tally tally_;
  LoadReport report_;
  Descriptor epoll_;
  std::deque<Connection> connections_;
  Phase phase_ = Phase::kStarting;
  Clock::time_point began_;
  Clock::time_point phase_ends_;
  Clock::time_point window_began_;
  Counts at_window_begin_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace penstock::evals
