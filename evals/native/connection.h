// One client connection of the load: sends the same request again and again, the next one when the
// answer to the last is complete, and tells the tally what came. It opens itself again when it is
// lost. Owned by LoadClient and used in its thread.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "descriptor.h"
#include "response_reader.h"
#include "sse_decoder.h"
#include "tally.h"

namespace penstock::evals {

using Clock = std::chrono::steady_clock;

struct Target {
  sockaddr_in address{};
  std::string request;  // head and body, as they go over the wire
};

class Connection {
 public:
  // `epoll` gets the socket with `key`. Target and tally outlive the connection.
  Connection(int epoll, uint32_t key, const Target& target, Tally& tally);

  void open();
  void on_ready(uint32_t epoll_events);
  // How long it has been waiting for an event, or for its answer's first bytes.
  Clock::duration silence(Clock::time_point now) const;

 private:
  void watch(int operation, uint32_t epoll_events);
  void on_writable();
  void on_readable();
  void begin_request();
  void send_rest();
  void take(std::string_view bytes);
  void take_event(std::string_view data);
  void finish_answer();
  void on_end_of_input();
  void fail(uint64_t Counts::*counter, std::string what);
  void note_started();

  const int epoll_;
  const uint32_t key_;
  const Target& target_;
  Tally& tally_;
  Descriptor socket_;
  bool connected_ = false;
  size_t sent_ = 0;  // bytes of the request that the kernel has taken
  bool started_ = false;

  ResponseReader reader_;
  SseDecoder decoder_;
  bool done_mark_ = false;
  bool error_seen_ = false;
  uint64_t events_ = 0;    // of this answer
  Clock::time_point now_;  // when the last bytes were read
  Clock::time_point asked_;
  Clock::time_point last_event_;
};

}  // namespace penstock::evals
