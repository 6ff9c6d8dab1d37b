// One answer on a connection: the head, then either a body with its length or a chunked stream.
// What the request flow sees of the client. One for each request; its I/O thread only.
#pragma once

#include <string>
#include <string_view>

#include "http/connection.h"
#include "http/request_reader.h"
#include "proxy/reply.h"

namespace penstock::http {

// What every answer to a request repeats or obeys.
struct AnswerFrame {
  std::string_view request_id;
  const Incoming& incoming;
  std::string_view cors_origin;  // empty: no CORS headers
};

class HttpReply final : public proxy::Reply {
 public:
  HttpReply(Connection& connection, const AnswerFrame& frame);

  upstream::Signal& signal() override { return connection_.signal(); }
  bool client_gone() const override { return connection_.gone(); }
  bool client_slow() const override { return connection_.too_slow(); }
  bool cut_short() const override { return connection_.cut_short(); }
  Awaitable<Sent> answer(const proxy::AnswerHead& head, std::string_view body) override;
  void begin_stream(const proxy::AnswerHead& head) override;
  Sent write(upstream::Payload& payload, proxy::Piece piece) override;
  Awaitable<Sent> flush() override { return connection_.flush(); }

  // The connection is not used again: set before the answer to say so in it.
  void close_after() { keep_alive_ = KeepAlive::kNo; }
  // The methods that a 405 names.
  void allow(std::string_view methods) { allow_ = methods; }
  KeepAlive keep_alive() const { return keep_alive_; }
  // An answer was begun, and all of it is with the connection.
  bool complete() const { return complete_; }

 private:
  std::string head_text(const proxy::AnswerHead& head) const;

  Connection& connection_;
  const AnswerFrame frame_;
  KeepAlive keep_alive_;
  std::string_view allow_;
  bool complete_ = false;
  std::string head_;  // of a stream, until its first piece
};

// "Not Found" for 404.
std::string_view reason_phrase(unsigned status);

}  // namespace penstock::http
