// One bidirectional gRPC call as the bytes of an HTTP/2 connection of its own: messages go in and
// bytes come out, and the other way round. Knows no sockets and no clocks.
//
// Why not grpcpp here: its threads read the socket and hand every message over to the I/O thread,
// which costs two wake-ups for each frame. Here the I/O thread reads the replica's socket as it
// reads its clients'.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "upstream/grpc_messages.h"

struct nghttp2_session;

namespace penstock::upstream {

class GrpcCodec {
 public:
  // Takes a message, valid for the call; false: it makes no sense and the call is over.
  using OnMessage = std::function<bool(std::string_view)>;

  // authority: host:port; path: "/package.Service/Method".
  GrpcCodec(const std::string& authority, const std::string& path, OnMessage on_message);
  GrpcCodec(const GrpcCodec&) = delete;
  GrpcCodec& operator=(const GrpcCodec&) = delete;
  ~GrpcCodec();

  // Room for a message of `bytes` bytes, to be filled before anything else is called.
  char* add_message(uint32_t bytes);
  // Asks the peer for a sign of life.
  void ping();
  // Tells the peer that the call is not wanted any more.
  void cancel();

  // Appends what is ready to be written until `out` holds about `most` bytes: what the peer's flow
  // control allows, and everything that HTTP/2 itself has to say.
  void produce(std::string& out, size_t most);
  // Reads what came. After it there may be something to write, even when all is over.
  void feed(std::string_view bytes);

  // Bytes of messages that the peer's flow control holds back.
  size_t backlog() const { return outbox_.size() - given_; }
  // Bytes of messages that it has let through since the beginning.
  uint64_t given() const { return total_given_; }

  // The call or its connection has ended, whatever the reason.
  bool over() const { return over_; }

 private:
  struct Callbacks;
  struct Close {
    void operator()(nghttp2_session* session) const;
  };

  void open(const std::string& authority, const std::string& path);
  size_t give(char* room, size_t size);
  void look_for_end();

  OnMessage on_message_;
  std::unique_ptr<nghttp2_session, Close> http2_;
  MessageReader reader_;
  std::string outbox_;  // messages with their prefixes
  size_t given_ = 0;    // of outbox_
  uint64_t total_given_ = 0;
  int32_t stream_ = 0;
  bool over_ = false;
};

}  // namespace penstock::upstream
