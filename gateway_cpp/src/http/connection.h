// One client's socket: reads and writes that never block and try the socket first, one pending wait
// for readability and one for writability, and one signal for all who wait. Its I/O thread only;
// held by its session and by waits in progress.
//
// Whether a client that ended its side of the connection has left or still reads cannot be seen, so
// it is asked: it is sent something that a reader passes over (the probe), to which the system of
// one that has left answers with a reset.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <memory>
#include <optional>
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

  // What a connection may do before the others of its thread have their turn.
  static constexpr size_t kTurnBytes = 256UL * 1024;
  static constexpr unsigned kTurnRequests = 16;
  // What a client has to take, on average over the write timeout, while something waits for it.
  static constexpr uint64_t kLeastBytesPerSecond = 256;
  // How much of later requests is read while an answer is made.
  static constexpr size_t kAheadBytes = 64UL * 1024;

  // The socket is non-blocking already. write_timeout: a client that takes next to nothing for so
  // long while something waits for it is gone.
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

  // A turn is over after so many bytes and requests without a wait: yield() before going on.
  void count_request() { ++turn_requests_; }
  bool turn_is_over() const { return turn_bytes_ >= kTurnBytes || turn_requests_ >= kTurnRequests; }
  Awaitable<void> yield();
  // The connection is about to wait: a new turn begins.
  void rest() { turn_bytes_ = turn_requests_ = 0; }

  // From here on an answer is being made: bytes that come are a later request, not news. `probe`,
  // static text: see above; empty: a client that ends its side has left.
  void begin_answer(std::string_view probe);
  void set_probe(std::string_view probe) { probe_ = probe; }
  void end_answer() { answering_ = false; }

  // Sends what the socket takes and keeps the rest for flush().
  Sent send(std::string_view bytes);
  Awaitable<Sent> flush();

  // Lets the client read everything before the connection goes: it may still be sending, and a
  // socket that is closed with bytes unread takes back what it sent.
  Awaitable<void> linger();

  enum class Ending : uint8_t { kClean, kReset };
  // How the client is to see this connection end, however it does, the process's death included.
  void set_ending(Ending ending);
  // Waits a little until the client's system has everything, which a reset would take back.
  Awaitable<void> hand_over();

  // Everybody who waits is told that the gateway ends.
  void end_soon();
  // Everybody who waits is told that the client is gone.
  void abort();
  void close();

 private:
  using ProbeTimer =
      asio::basic_waitable_timer<std::chrono::steady_clock,
                                 asio::wait_traits<std::chrono::steady_clock>, upstream::Executor>;

  void watch();
  void on_readable();
  void read_ahead();
  void ask_whether_it_reads();
  void watch_for_reset();
  void lose();
  void wait_writable();
  size_t try_send(std::string_view bytes);
  void send_unsent();
  std::string_view take_ahead(char* memory);
  bool is_too_slow();
  std::chrono::milliseconds rest_of_window() const;
  int unacknowledged();

  Socket socket_;
  proxy::TimerWheel& timers_;
  const std::chrono::milliseconds write_timeout_;
  upstream::Signal signal_;
  std::string unsent_;
  size_t unsent_begin_ = 0;  // what is before it has been sent
  std::string ahead_;        // of later requests
  std::string_view probe_;
  std::unique_ptr<ProbeTimer> probing_;  // of a client that has ended its side
  uint64_t sent_total_ = 0;
  std::optional<base::SteadyTime> behind_since_;  // the client has not caught up since
  uint64_t behind_sent_ = 0;                      // sent_total_ then
  size_t turn_bytes_ = 0;
  unsigned turn_requests_ = 0;
  unsigned interim_probes_ = 0;  // in this answer, before its head
  bool watching_ = false;
  bool watching_for_reset_ = false;
  bool waiting_writable_ = false;
  bool answering_ = false;
  bool gone_ = false;
  bool too_slow_ = false;
  bool cut_short_ = false;
};

}  // namespace penstock::http
