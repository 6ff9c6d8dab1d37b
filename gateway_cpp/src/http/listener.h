// Accepts clients for one I/O thread and starts a session for each. Over the limit of connections
// some are still taken, to be told so; without descriptors they are taken and closed, so that they
// do not wait in vain. That thread only.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "base/log.h"
#include "http/connection.h"
#include "http/session_group.h"
#include "proxy/timer_wheel.h"

namespace penstock::http {

class Listener {
 public:
  // `socket`: from listen_on(), owned from now on. max_connections: of the whole gateway.
  Listener(asio::io_context& io, int socket, uint32_t max_connections, SessionGroup& sessions,
           Services& services, proxy::TimerWheel& timers, base::Log& log);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  void start() { wait(); }
  // Takes who is already in the queue, then closes it. Idempotent.
  void stop();

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, upstream::Executor>;

  void wait();
  void accept_all();
  void take(int client);
  void refuse_without_descriptor();

  asio::io_context& io_;
  const asio::ip::tcp protocol_;
  Acceptor acceptor_;
  const uint32_t max_connections_;
  SessionGroup& sessions_;
  Services& services_;
  proxy::TimerWheel& timers_;
  base::Log& log_;
  int spare_ = -1;  // given up to take a client when descriptors have run out
};

}  // namespace penstock::http
