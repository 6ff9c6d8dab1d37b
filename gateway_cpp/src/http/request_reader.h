// Reads the requests of one connection, one after the other: strict framing, limits on head and
// body, deadlines for both. One for each session; its I/O thread only.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/error.h"
#include "http/connection.h"

namespace penstock::http {

struct ReadLimits {
  size_t head_bytes;
  size_t body_bytes;
  std::chrono::milliseconds head_timeout;
  std::chrono::milliseconds body_timeout;
  std::chrono::milliseconds idle_timeout;  // between requests
};

enum class KeepAlive : uint8_t { kYes, kNo };

// A request as far as this gateway reads it.
struct Incoming {
  std::string method;
  std::string target;
  bool is_http_1_0 = false;
  KeepAlive keep_alive = KeepAlive::kYes;
  std::string content_type;
  std::string client_request_id;
  std::string traceparent;
  std::string origin;         // of a browser's page; empty: not a browser
  std::string asked_headers;  // access-control-request-headers
  std::string body;
};

// The connection ended, or was idle for too long: nothing to say.
struct NoMore {};

class RequestReader {
 public:
  // An Error is to be told to the client, and then the connection closed.
  using Outcome = std::variant<Incoming, base::Error, NoMore>;

  RequestReader(Connection& connection, const ReadLimits& limits)
      : connection_(connection),
        limits_(limits),
        timer_(connection.timers(), connection.signal()) {}

  Awaitable<Outcome> next();

  // Shortens the wait for the next request, from now.
  void hurry(std::chrono::milliseconds idle_timeout) {
    limits_.idle_timeout = idle_timeout;
    if (idle_) timer_.arm(idle_timeout);
  }

 private:
  using Failed = std::optional<base::Error>;

  enum class Filled : uint8_t { kMore, kTooLate, kGone };

  Awaitable<bool> first_bytes();
  Awaitable<Failed> head();
  Awaitable<Failed> request(Incoming& incoming);
  Awaitable<Filled> fill();
  void skip_blank_lines();

  Connection& connection_;
  ReadLimits limits_;
  proxy::TimerWheel::Timer timer_;
  std::string buffer_;  // read and not yet used
  bool idle_ = true;
};

}  // namespace penstock::http
