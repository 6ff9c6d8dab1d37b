// The TCP connection that carries one gRPC call to a replica, on one I/O thread: connects, reads,
// writes and watches that the other side lives. What the bytes mean is the GrpcCodec's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/awaitable.h"
#include "upstream/grpc_codec.h"

namespace penstock::upstream {

namespace asio = boost::asio;

// When a connection counts as lost.
struct ConnectionPatience {
  std::chrono::milliseconds connect{2'000};  // to find a name, and again to hear the first byte
  // A replica that falls silent is asked for a sign of life after one to two times this, and is
  // lost after another.
  std::chrono::milliseconds silence{5'000};
  // One that answers but takes nothing off more than this, from one look at its life to the next,
  // does not read. A burst of large bodies that goes on its way may be larger.
  size_t backlog_bytes = 256UL * 1024 * 1024;
};

class ReplicaConnection final : public std::enable_shared_from_this<ReplicaConnection> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // A message, valid for the call; false: it makes no sense. Must not let go of the connection.
    virtual bool on_message(std::string_view message) = 0;
    // All messages of one read were handed over.
    virtual void on_turn() = 0;
    // The call is over, or never came up; `why` is for a person. Last and once, never out of a
    // method called here.
    virtual void on_end(std::string_view why) = 0;
  };

  // target.authority: where to connect, host:port, where host is a name, an IPv4 or a bracketed
  // IPv6 address. `owner` lives until it has called close() or has heard of the end.
  static std::shared_ptr<ReplicaConnection> start(asio::io_context& io, const CallTarget& target,
                                                  Owner& owner, ConnectionPatience patience = {});

  // Room for a message, see GrpcCodec; it leaves with the next flush().
  char* add_message(uint32_t bytes, SharedBody tail = nullptr) {
    return codec_.add_message(bytes, std::move(tail));
  }
  // Lets go of a message's tail, see GrpcCodec.
  void blank_tail(uint64_t end) { codec_.blank_tail(end); }
  void flush();
  // Bytes of messages that were ever added, and of these, those that the socket may have taken: a
  // message that ends after them was never sent.
  uint64_t added() const { return codec_.added(); }
  uint64_t handed_over() const;
  // What the other side has said about the call.
  PeerWord peer_word() const { return codec_.peer_word(); }
  bool going_away() const { return codec_.going_away(); }
  // Says goodbye without waiting; the owner hears nothing more.
  void close();

 private:
  using tcp = asio::ip::tcp;
  using Socket = asio::basic_stream_socket<tcp, runtime::Executor>;
  using Timer =
      asio::basic_waitable_timer<std::chrono::steady_clock,
                                 asio::wait_traits<std::chrono::steady_clock>, runtime::Executor>;
  using Resolver = asio::ip::basic_resolver<tcp, runtime::Executor>;
  using ErrorCode = boost::system::error_code;

  ReplicaConnection(asio::io_context& io, const CallTarget& target, Owner& owner,
                    ConnectionPatience patience);

  void connect(const std::string& address);
  void hear_within(std::chrono::milliseconds patience);
  void connected();
  void wait_readable();
  ErrorCode take_in();
  void read();
  void read_last();
  void write();
  bool next_piece();
  void wait_writable();
  void watch_life();
  void look_for_life();
  bool stuck();
  void end(std::string_view why);

  Owner* owner_;  // null once it has closed or heard of the end
  const ConnectionPatience patience_;
  Socket socket_;
  Resolver resolver_;
  Timer timer_;
  GrpcCodec codec_;
  std::string unsent_;
  size_t sent_ = 0;            // of unsent_
  uint64_t given_before_ = 0;  // bytes of messages that were taken off before unsent_ was made
  bool connected_ = false;
  bool answered_ = false;  // the first byte has come
  bool waiting_writable_ = false;
  bool heard_ = false;  // since the last look
  bool asked_ = false;  // for a sign of life
  uint64_t given_ = 0;  // bytes of messages that were taken off before the last look
};

}  // namespace penstock::upstream
