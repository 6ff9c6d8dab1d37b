// One bidirectional gRPC call as the bytes of an HTTP/2 connection of its own: messages go in and
// bytes come out, and the other way round. Knows no sockets and no clocks.
//
// Why not grpcpp here: its threads read the socket and hand every message over to the I/O thread,
// which costs two wake-ups for each frame. Here the I/O thread reads the replica's socket as it
// reads its clients'.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "upstream/grpc_messages.h"
#include "upstream/large_body.h"

struct nghttp2_session;

namespace penstock::upstream {

// What a call asks for.
struct CallTarget {
  std::string authority;  // host:port
  std::string path;       // "/package.Service/Method"
  std::string token;      // sent as "authorization: Bearer <token>"; empty: none is sent
  size_t most_message_bytes = 256UL * 1024 * 1024;  // one that is larger makes no sense
};

// How the peer ended a call, or will.
enum class PeerWord : uint8_t {
  kNone,    // it said nothing: the connection broke, or we ended it
  kEnded,   // it answered with a status or reset the call: its process lives
  kNotSeen  // it will not look at the call at all
};

class GrpcCodec {
 public:
  // Takes a message, valid for the call; false: it makes no sense and the call is over.
  using OnMessage = std::function<bool(std::string_view)>;

  GrpcCodec(const CallTarget& target, OnMessage on_message);
  GrpcCodec(const GrpcCodec&) = delete;
  GrpcCodec& operator=(const GrpcCodec&) = delete;
  ~GrpcCodec();

  // Room for the first `bytes` bytes of a message, to be filled before anything else is called; the
  // rest of it, if any, is `tail`, which is not copied here.
  char* add_message(uint32_t bytes, SharedBody tail = nullptr);
  // Lets go of the tail of the message that ends there, counted as in added(): nobody wants it any
  // more. What the peer has not got of it goes as zeros, since its length was announced.
  void blank_tail(uint64_t end);
  // Asks the peer for a sign of life.
  void ping();
  // Tells the peer that the call is not wanted any more.
  void cancel();
  // Lets go of all messages that it still holds: their connection is gone.
  void drop();

  // Appends what is ready to be written until `out` holds about `most` bytes: what the peer's flow
  // control allows, and everything that HTTP/2 itself has to say.
  void produce(std::string& out, size_t most);
  // Reads what came. After it there may be something to write, even when all is over.
  void feed(std::string_view bytes);

  // Bytes of messages that the peer's flow control holds back.
  size_t backlog() const { return outbox_.size() - given_ + tail_bytes_; }
  // Bytes of messages that it has let through since the beginning.
  uint64_t given() const { return total_given_; }
  // Bytes of messages that were ever added, prefixes included.
  uint64_t added() const { return total_given_ + backlog(); }

  // The call or its connection has ended, whatever the reason.
  bool over() const { return over_; }
  // Why it is over, for a person; empty while it is not.
  const std::string& why_over() const { return why_over_; }
  PeerWord peer_word() const { return peer_word_; }
  // The peer takes no further calls on this connection (GOAWAY) and finishes what it has.
  bool going_away() const { return going_away_; }

 private:
  struct Callbacks;
  struct Close {
    void operator()(nghttp2_session* session) const;
  };

  // The end of a message, which lies elsewhere.
  struct Tail {
    size_t before;    // bytes of the outbox that go first, those behind the tail before it
    SharedBody body;  // null: zeros
    size_t left;      // not yet given
    uint64_t end;     // of its message, counted as in added()
  };

  void open(const CallTarget& target);
  size_t give(char* room, size_t size);
  size_t give_text(char* room, size_t size);
  size_t give_tail(char* room, size_t size);
  void look_for_end();
  void note_header(std::string_view name, std::string_view value);
  void note_goaway(int32_t last_stream, uint32_t error);
  void end(std::string why, PeerWord word = PeerWord::kNone);
  std::string status_text() const;

  const OnMessage on_message_;
  const size_t most_message_bytes_;
  std::unique_ptr<nghttp2_session, Close> http2_;
  MessageReader reader_;
  std::string outbox_;      // messages with their prefixes, without their tails
  size_t given_ = 0;        // of outbox_
  std::deque<Tail> tails_;  // not yet given whole
  size_t tail_bytes_ = 0;   // of them, not yet given
  uint64_t total_given_ = 0;
  int32_t stream_ = 0;
  std::string http_status_;   // ":status"
  std::string grpc_status_;   // as a number in text; empty: none came
  std::string grpc_message_;  // percent-encoded
  std::string why_over_;
  PeerWord peer_word_ = PeerWord::kNone;
  bool going_away_ = false;
  bool over_ = false;
};

}  // namespace penstock::upstream
