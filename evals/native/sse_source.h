// An HTTP server that gives one recorded answer to every request: what stands behind nginx, so that
// nginx carries the same events as the gateway does. Paced, all streams get an event at the same
// instants, as the running requests of an engine do at each of its steps. Single thread, epoll.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "descriptor.h"
#include "recording.h"
#include "request_reader.h"

namespace penstock::evals {

// One client of the source. Sends at once and keeps what the kernel does not take; SseSource calls
// send_rest when the socket has room again.
class SourceConnection {
 public:
  explicit SourceConnection(Descriptor socket) : socket_(std::move(socket)) {}

  // Returns how many requests are complete, or -1 when the client is gone.
  int read_requests();
  void send(std::string_view bytes);
  void send_rest() { send({}); }
  bool has_unsent() const { return !unsent_.empty(); }
  // The answer's head and first event, as an engine's first token comes before the next step.
  void begin_endless(const Recording& recording);
  void step(const Recording& recording);

 private:
  static constexpr size_t kIdle = SIZE_MAX;
  // A client that does not read gets no more events. What a step leaves unsent goes with the next.
  static constexpr size_t kMaxUnsent = 1 << 20;

  Descriptor socket_;
  RequestReader requests_;
  std::string unsent_;
  size_t next_step_ = kIdle;
};

class SseSource {
 public:
  // With a `step` of zero every request gets the whole recorded answer at once; otherwise an
  // endless stream with one event per step. Binds a free port of the loopback.
  SseSource(Recording recording, std::chrono::microseconds step);

  uint16_t port() const { return port_; }
  // Serves until the process ends.
  [[noreturn]] void run();

 private:
  void watch(int operation, int fd, uint32_t epoll_events);
  void on_ready(int fd, uint32_t epoll_events);
  void on_client(int fd, uint32_t epoll_events);
  void answer(SourceConnection& connection, int requests);
  void accept_all();
  void step_all();

  Recording recording_;
  std::chrono::microseconds step_;
  Descriptor epoll_;
  Descriptor listener_;
  Descriptor timer_;
  uint16_t port_ = 0;
  std::unordered_map<int, std::unique_ptr<SourceConnection>> connections_;
};

}  // namespace penstock::evals
