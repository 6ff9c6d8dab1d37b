// The beginning of a connection to a port that speaks TLS: the handshake, whose steps side threads
// compute, so that a crowd of new clients holds up nobody's stream. Nothing but the bytes of its
// first record is held of a client before it has sent them. One for each session; its I/O thread
// only.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "http/connection.h"
#include "runtime/side_threads.h"
#include "runtime/timer_wheel.h"
#include "tls/credentials_table.h"

namespace penstock::http {

// What makes a port one of TLS. Both outlive the port's threads.
struct TlsPort {
  const tls::CredentialsTable& credentials;
  runtime::SideThreads& aside;
};

class Handshake {
 public:
  enum class End : uint8_t {
    kSecure,     // the connection speaks TLS from now on
    kPlainHttp,  // the client does not; what it sent so far is lost
    kFailed,     // there is no coming to terms, which TLS has told it if it speaks it: fault()
    kGone,       // the client left, or took too long
  };

  Handshake(Connection& connection, const TlsPort& port)
      : connection_(connection), port_(port), timer_(connection.timers(), connection.signal()) {}

  Awaitable<End> run(std::chrono::milliseconds timeout);

  // Shortens what is left of it, from now, also before it has begun.
  void hurry(std::chrono::milliseconds timeout) {
    most_ = timeout;
    timer_.arm(timeout);
  }
  const std::string& fault() const { return fault_; }

 private:
  struct Step;

  Awaitable<std::string_view> next_bytes();
  Awaitable<bool> compute(const std::shared_ptr<Step>& step);
  bool is_over() const { return connection_.gone() || connection_.cut_short() || timer_.fired(); }

  Connection& connection_;
  const TlsPort port_;
  runtime::TimerWheel::Timer timer_;
  std::chrono::milliseconds most_ = std::chrono::milliseconds::max();
  std::string fault_;
};

}  // namespace penstock::http
