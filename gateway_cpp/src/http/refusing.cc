// How a client is told that its request is refused before it is read, or that it broke.
#include <string>
#include <string_view>
#include <utility>

#include "dialects/errors.h"
#include "dialects/stream_end.h"
#include "http/session.h"
#include "http/session_errors.h"
#include "openai/errors.h"

namespace penstock::http {

Awaitable<void> Session::refuse(base::Error error, HttpReply& reply) {
  // Before its body: just now.
  if (received_ == base::SteadyTime{}) received_ = services_.clock.steady_now();
  proxy::AnswerHead head{.status = error.status,
                         .content_type = base::kJsonType,
                         .headers = openai::error_headers(error)};
  const AnswerFrame& frame = reply.frame();
  const openai::Endpoint* endpoint = openai::endpoint_at(frame.head.target);
  if (services_.flow != nullptr && endpoint != nullptr) {
    const std::string_view client = services_.config.client_addresses
                                        ? std::string_view(connection_->client_address())
                                        : std::string_view();
    const proxy::Unread request{.request_id = frame.request_id,
                                .client_request_id = frame.callers_id,
                                .traceparent = frame.head.traceparent,
                                .client = client,
                                .endpoint = endpoint,
                                .received = received_};
    services_.flow->introduce(head, request, error);
  }
  const auto dialect = openai::dialect_at(frame.head.target);
  const std::string body = dialects::error_body(dialect, error, frame.request_id);
  co_await reply.answer(head, body);
}

// What was read is not to be trusted: nothing of it is used but for whom the answer is, and nothing
// after it is read.
Awaitable<void> Session::refuse_unread(const Unreadable& unreadable) {
  services_.metrics.bad_requests.add();
  received_ = {};
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, frame_of(unreadable.head, id));
  reply.close_after();
  co_await refuse(unreadable.error, reply);
}

// The last resort, for a fault of our own: the client is told, by a status or in its stream.
Awaitable<void> Session::tell_broken(std::string_view what, HttpReply& reply) {
  services_.metrics.broken_requests.add();
  services_.log.error("a request ended by an exception", {{"error", what}});
  reply.close_after();
  const base::Error error = our_fault();
  if (reply.progress() == HttpReply::Progress::kNone && !reply.streams()) {
    co_return co_await refuse(error, reply);
  }
  if (!reply.streams() || reply.progress() > HttpReply::Progress::kBegun) co_return;
  const AnswerFrame& frame = reply.frame();
  const auto dialect = openai::dialect_at(frame.head.target);
  runtime::Payload payload;
  // What a response has told of itself so far, nobody knows here: it is only cut.
  if (dialect != openai::Dialect::kResponses || reply.progress() == HttpReply::Progress::kNone) {
    payload.append(dialects::StreamEnd(dialect).broken(error, {.request_id = frame.request_id}));
  }
  if (reply.write(payload, proxy::Piece::kCutOff) == Sent::kBlocked) co_await reply.flush();
}

}  // namespace penstock::http
