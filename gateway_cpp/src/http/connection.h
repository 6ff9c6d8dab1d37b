// One client's socket: reads and writes that never block, and one signal for all who wait. Its I/O
// thread only; held by its session and by what it has posted.
//
// News of the socket comes once, from the thread's Readiness. It is kept until a read or a write
// has found the end of it, so that neither is tried where there is nothing to gain, and waiting
// costs nothing. A read that fills less than its memory has found the end of what was there, but
// not of what the client said before it ended its side, or marked urgent: there it takes a read
// that finds nothing.
//
// Whether a client that ended its side of the connection has left or still reads cannot be seen, so
// it is asked: it is sent something that a reader passes over (the probe), to which the system of
// one that has left answers with a reset.
//
// Under TLS all of this is said of the bytes on the wire; what is read and sent is deciphered and
// sealed on its way. There a client can say that it leaves, and is believed: it may wait for an
// answer to that with its socket open.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/awaitable.h"
#include "runtime/descriptor.h"
#include "runtime/readiness.h"
#include "runtime/send_batch.h"
#include "runtime/sent.h"
#include "runtime/signal.h"
#include "runtime/timer_wheel.h"
#include "tls/channel.h"

namespace penstock::http {

namespace asio = boost::asio;

using runtime::Awaitable;
using runtime::Sent;

class Connection final : public std::enable_shared_from_this<Connection>,
                         private runtime::Readiness::Watcher,
                         private runtime::SendBatch::Sender {
 public:
  // What a connection may do before the others of its thread have their turn.
  static constexpr size_t kTurnBytes = 256UL * 1024;
  static constexpr unsigned kTurnRequests = 16;
  // What a client has to take, on average over the write timeout, while something waits for it.
  static constexpr uint64_t kLeastBytesPerSecond = 256;
  // How much of later requests is read while an answer is made.
  static constexpr size_t kAheadBytes = 64UL * 1024;

  // What all connections of a thread share.
  struct Shared {
    runtime::Readiness& readiness;
    runtime::TimerWheel& timers;
    runtime::SendBatch& sends;
  };

  // write_timeout: a client that takes next to nothing for so long while something waits for it is
  // gone. So is one whose socket the system does not watch.
  Connection(runtime::Descriptor socket, const Shared& shared,
             std::chrono::milliseconds write_timeout);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Who is at its other end, without the port; looked up once. Empty: the system does not say.
  const std::string& client_address();

  runtime::Signal& signal() { return signal_; }
  runtime::TimerWheel& timers() { return timers_; }
  runtime::Executor executor() { return readiness_.executor(); }
  // The client closed, or broke the connection, or abort() was called.
  bool gone() const { return gone_; }
  // It is gone because it took too little for too long.
  bool too_slow() const { return too_slow_; }
  // end_soon() was called: the answer that is being made is to end with an error.
  bool cut_short() const { return cut_short_; }

  // TLS from here on: the handshake is over, and `behind_it` is what has come behind it.
  void secure(std::unique_ptr<tls::Channel> channel, std::string_view behind_it);

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
  // The same for a small piece after which the connection stays: at the end of the thread's batch,
  // if one is open. What the socket does not take then is behind(), and the signal tells.
  Sent send_soon(std::string_view bytes);
  // A small piece in a frame, only if it can go with the batch, behind what of this answer does
  // already, and the answer goes on. False: nothing was done.
  bool send_along(std::string_view before, std::string_view bytes, std::string_view after);
  // Something is kept for flush(), or for the end of the batch.
  bool behind() const { return has_kept() || !unsent_.empty(); }
  // flush() before the next read: what is there to read may be the client's end, and what it was
  // sent before goes first. What is kept for a batch waits for that where there is nothing.
  bool owes_before_reading() const { return has_kept() ? readable_ : behind(); }
  Awaitable<Sent> flush();
  // Sends what stays the caller's, as the client takes it: no more than a part of it is ever held
  // here too. Others have their turn in between, and nothing else goes out.
  Awaitable<Sent> send_in_parts(std::string_view bytes);
  // Until `patience` has fired; what is left then stays unsent.
  Awaitable<void> flush(const runtime::TimerWheel::Timer& patience);

  // Whether a client of TLS is told that nothing was cut off.
  enum class Farewell : uint8_t { kWhole, kCut };
  // Lets the client read everything before the connection goes: it may still be sending, and a
  // socket that is closed with bytes unread takes back what it sent.
  Awaitable<void> linger(Farewell farewell);

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
                                 asio::wait_traits<std::chrono::steady_clock>, runtime::Executor>;

  // Like recv(): what came, in the memory that read() returns; else why there is nothing.
  enum class Received : uint8_t { kBytes, kNothingYet, kEnd, kGoodbye, kBroken };
  struct Part {
    Received received;
    std::string_view bytes;
  };
  Part receive(size_t most);
  Part receive_raw(char* memory, size_t most);
  Part receive_sealed(size_t most);

  // What TLS has made of bytes that go out at once: one for all connections of a thread.
  static std::string& empty_wire_memory();
  void on_ready(uint32_t events) override;
  void send_kept(std::string_view bytes) override;
  void watch();
  void look_later();
  void look();
  void on_readable();
  void read_ahead();
  void ask_whether_it_reads();
  void lose();
  bool may_put_off(size_t bytes) const;
  Sent put(std::string_view wire_bytes);
  Sent seal_and_put(std::string_view bytes);
  void say_goodbye();
  size_t try_send(std::string_view wire_bytes);
  void send_unsent();
  Awaitable<void> give_time_to_read();
  void look_for_the_end();
  bool has_ended_its_side() const;
  bool is_reset() const;
  void in_a_while(void (Connection::*what)());
  std::string_view take_ahead();
  size_t room_ahead() const;
  bool is_too_slow();
  std::chrono::milliseconds rest_of_window() const;
  int unacknowledged();

  // What each event of a stream looks at lies together, behind what the batch does: with hundreds
  // of streams every line of the cache that one of them takes is fetched anew.
  runtime::Descriptor socket_;
  bool gone_ = false;
  bool too_slow_ = false;
  bool cut_short_ = false;
  bool writable_ = true;
  runtime::SendBatch& sends_;
  std::unique_ptr<tls::Channel> tls_;  // null: the bytes are those on the wire
  std::string unsent_;                 // as on the wire
  uint64_t sent_total_ = 0;

  size_t unsent_begin_ = 0;  // what is before it has been sent
  runtime::Readiness& readiness_;
  runtime::Readiness::Registration registration_;
  runtime::TimerWheel& timers_;
  const std::chrono::milliseconds write_timeout_;
  runtime::Signal signal_;
  std::string ahead_;           // of later requests
  std::string client_address_;  // empty: not looked up yet
  std::string_view probe_;
  std::unique_ptr<ProbeTimer> probing_;  // of a client that has ended its side, or may unseen
  std::optional<base::SteadyTime> behind_since_;  // the client has not caught up since
  uint64_t behind_sent_ = 0;                      // sent_total_ then
  size_t turn_bytes_ = 0;
  unsigned turn_requests_ = 0;
  unsigned interim_probes_ = 0;  // in this answer, before its head
  uint32_t told_ = 0;            // all events of this socket so far
  bool readable_ = true;         // a client's first request may have come before it was taken
  bool watching_ = false;        // for what can be read
  bool looking_later_ = false;
  bool watching_for_reset_ = false;
  bool waiting_writable_ = false;
  bool answering_ = false;
  bool in_parts_ = false;  // a probe may come between two of them, and must not
};

}  // namespace penstock::http
