// One client's socket: reads and writes that never block and try the socket first, one pending wait
// for readability and one for writability, and one signal for all who wait. Its I/O thread only;
// held by its session and by waits in progress.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "proxy/reply.h"
#include "proxy/timer_wheel.h"
#include "upstream/awaitable.h"
#include "upstream/signal.h"

namespace penstock::http {

namespace asio = boost::asio;

using proxy::Awaitable;
using proxy::Sent;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = asio::basic_stream_socket<asio::ip::tcp, upstream::Executor>;

  // The socket is non-blocking already. write_timeout: a client that takes nothing for so long
  // while something waits for it is gone.
  Connection(Socket socket, proxy::TimerWheel& timers, std::chrono::milliseconds write_timeout);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  upstream::Signal& signal() { return signal_; }
  proxy::TimerWheel& timers() { return timers_; }
  // The client closed, or broke the connection, or abort() was called.
  bool gone() const { return gone_; }
  // It is gone because it took too little for too long.
  bool too_slow() const { return too_slow_; }
  // end_soon() was called: the answer that is being made is to end with an error.
  bool cut_short() const { return cut_short_; }

  // What is there now, in memory that the next read of any connection of this thread overwrites.
  // Empty: nothing now (the signal will tell) or gone().
  std::string_view read();

  // From here on an answer is being made: bytes that come are a later request, not news.
  void begin_answer();
  void end_answer() { answering_ = false; }

  // Sends what the socket takes and keeps the rest for flush().
  Sent send(std::string_view bytes);
  Awaitable<Sent> flush();

  // Lets the client read everything before the connection goes: it may still be sending, and a
  // socket that is closed with bytes unread takes back what it sent.
  Awaitable<void> linger();

  // Everybody who waits is told that the gateway ends.
  void end_soon();
  // Everybody who waits is told that the client is gone.
  void abort();
  void close();

 private:
  void watch();
  void on_readable();
  void wait_writable();
  size_t try_send(std::string_view bytes);

  Socket socket_;
  proxy::TimerWheel& timers_;
  const std::chrono::milliseconds write_timeout_;
  upstream::Signal signal_;
  std::string unsent_;
  bool watching_ = false;
  bool waiting_writable_ = false;
  bool answering_ = false;
  bool gone_ = false;
  bool too_slow_ = false;
  bool cut_short_ = false;
};

}  // namespace penstock::http
