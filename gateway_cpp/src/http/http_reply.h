// One answer on a connection: the head, then either a body with its length or a chunked stream.
// What the request flow sees of the client. One for each request; its I/O thread only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/connection.h"
#include "http/strict_head.h"
#include "proxy/reply.h"

namespace penstock::http {

// What every answer to a request repeats or obeys.
struct AnswerFrame {
  std::string_view request_id;
  std::string_view callers_id;  // of the request; empty: it has none
  const RequestHead& head;
  std::string_view reader;         // the origin whose page may read the answer; empty: none
  bool depends_on_origin = false;  // another origin's page would be told something else
};

class HttpReply final : public proxy::Reply {
 public:
  HttpReply(Connection& connection, const AnswerFrame& frame)
      : connection_(connection), keep_alive_(frame.head.keep_alive), frame_(frame) {}

  runtime::Signal& signal() override { return connection_.signal(); }
  bool client_gone() const override { return connection_.gone(); }
  bool client_slow() const override { return connection_.too_slow(); }
  bool cut_short() const override { return connection_.cut_short(); }
  Sent answer_short(const proxy::AnswerHead& head, std::string_view body) override;
  Awaitable<Sent> answer(const proxy::AnswerHead& head, std::string_view body) override;
  Awaitable<Sent> answer(const proxy::AnswerHead& head, proxy::HeldAnswer& body) override;
  void begin_stream(const proxy::AnswerHead& head) override;
  Sent write(runtime::Payload& payload, proxy::Piece piece) override;
  bool write_along(std::string_view bytes) override;
  bool behind() const override { return connection_.behind(); }
  Awaitable<Sent> flush() override;

  // The whole request has been read: the client is watched while its answer is made.
  void watch_client();
  // The connection is not used again: set before the answer to say so in it.
  void close_after() { keep_alive_ = KeepAlive::kNo; }
  // What this answer says besides.
  void add(std::string_view name, std::string_view value) {
    added_.push_back({name, std::string(value)});
  }
  KeepAlive keep_alive() const { return keep_alive_; }
  const AnswerFrame& frame() const { return frame_; }

  // How far the answer has come.
  enum class Progress : uint8_t {
    kNone,   // the client has no byte of it
    kBegun,  // it has a part
    kCut,    // it has been told that there will be no more
    kWhole,  // all of it is with the connection
  };
  Progress progress() const { return progress_; }
  bool streams() const { return streams_; }
  // The client was told to read a stream up to the connection's end.
  bool ends_with_connection() const { return ends_with_connection_; }

 private:
  Awaitable<Sent> flush_whole();
  Awaitable<Sent> answer_in_pieces(const proxy::AnswerHead& head, proxy::HeldAnswer& body);
  template <class Visit>
  void each_header(const proxy::AnswerHead& head, const Visit& visit) const;
  std::string head_text(const proxy::AnswerHead& head) const;
  std::string head_text(const proxy::AnswerHead& head, size_t body_bytes) const;
  std::string_view framed(runtime::Payload& payload, proxy::Piece piece) const;
  Sent send_end(std::string_view bytes);

  Connection& connection_;
  std::string head_;  // of a stream, until its first piece
  KeepAlive keep_alive_;
  Progress progress_ = Progress::kNone;
  bool whole_when_flushed_ = false;  // a short answer of which the client has not taken all
  bool streams_ = false;
  bool ends_with_connection_ = false;
  const AnswerFrame frame_;
  std::vector<openai::Header> added_;
};

// "Not Found" for 404.
std::string_view reason_phrase(unsigned status);

}  // namespace penstock::http
