// Accepts clients for one I/O thread and starts a session for each. At the limit of connections
// those that wait for a request give way, this thread's first; where none does, some more clients
// are taken to be told so. Without descriptors they are taken and closed, so that they do not wait
// in vain. That thread only.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <string>

#include "base/log.h"
#include "http/connection.h"
#include "http/session_group.h"
#include "runtime/descriptor.h"
#include "runtime/timer_wheel.h"

namespace penstock::http {

class Listener {
 public:
  // `socket`: from listen_on(), owned from now on. max_connections: over all threads, may change.
  // `clients_come`: told before some are taken, unless that is because it stops.
  Listener(
      asio::io_context& io, int socket, const std::atomic<uint32_t>& max_connections,
      SessionGroup& sessions, Services& services, const Connection::Shared& shared, base::Log& log,
      std::function<void()> clients_come = [] {});
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void start() { wait(); }
  // Takes who is already in the queue, then closes it. Idempotent.
  void stop();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, runtime::Executor>;
  using Timer =
      asio::basic_waitable_timer<std::chrono::steady_clock,
                                 asio::wait_traits<std::chrono::steady_clock>, runtime::Executor>;

  enum class Queue : uint8_t { kEmpty, kMore, kStuck };

  void wait();
  void on_clients();
  void rest();
  Queue accept_some(unsigned at_most);
  void take(runtime::Descriptor client);
  bool find_room(uint32_t connections, uint32_t most);
  bool refuse_without_descriptor();

  asio::io_context& io_;
  Acceptor acceptor_;
  Timer resting_;
  const std::atomic<uint32_t>& max_connections_;
  SessionGroup& sessions_;
  Services& services_;
  const Connection::Shared shared_;
  base::Log& log_;
  const std::function<void()> clients_come_;
  runtime::Descriptor spare_;  // given up to take a client when descriptors have run out
};

}  // namespace penstock::http
