#include "http/http_reply.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text_cursor.h"
#include "openai/endpoints.h"

namespace penstock::http {

namespace {

// A head and a short body behind it.
constexpr size_t kUsualAnswer = 2048;
constexpr std::string_view kLastChunk = "0\r\n\r\n";
// What a reader passes over: before the answer, in a chunked stream of events, in one without
// chunks.
constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kChunkedComment = "8\r\n: ping\n\n\r\n";
constexpr std::string_view kComment = ": ping\n\n";
// All that an answer may have and that a page sees only if it is named here.
constexpr std::string_view kExposedHeaders =
    "x-request-id, request-id, x-client-request-id, openai-processing-ms, openai-version, "
    "retry-after, "
    "retry-after-ms, x-should-retry, x-penstock-backend, x-penstock-backend-version, "
    "x-penstock-model-version, x-penstock-adapter-version, x-penstock-replica, "
    "x-penstock-trace-id, x-penstock-queue-ms, x-penstock-estimated-wait-ms, "
    "x-penstock-prefix-hit, x-penstock-kv-moved, x-penstock-degraded, x-penstock-trimmed, "
    "x-penstock-drop-reason, "
    "x-ratelimit-limit-requests, "
    "x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, "
    "x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, "
    "allow, accept-encoding, www-authenticate";

constexpr size_t kMarks = std::string_view(": \r\n").size();  // about a header

void add_header(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ").append(value).append("\r\n");
}

// The line before the bytes of a chunk.
class ChunkSize {
 public:
  explicit ChunkSize(size_t bytes) {
    char* end = std::to_chars(text_.data(), text_.data() + text_.size() - 2, bytes, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    size_ = static_cast<size_t>(end - text_.data());
  }
  std::string_view line() const { return {text_.data(), size_}; }

 private:
  std::array<char, runtime::Payload::kHeadroom> text_{};
  size_t size_ = 0;
};

bool has_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

std::string_view reason_phrase(unsigned status) {
  struct Row {
    unsigned status;
    std::string_view phrase;
  };
  static constexpr std::array<Row, 21> kRows = {{{200, "OK"},
                                                 {201, "Created"},
                                                 {204, "No Content"},
                                                 {400, "Bad Request"},
                                                 {401, "Unauthorized"},
                                                 {403, "Forbidden"},
                                                 {404, "Not Found"},
                                                 {405, "Method Not Allowed"},
                                                 {408, "Request Timeout"},
                                                 {409, "Conflict"},
                                                 {413, "Content Too Large"},
                                                 {415, "Unsupported Media Type"},
                                                 {421, "Misdirected Request"},
                                                 {422, "Unprocessable Content"},
                                                 {429, "Too Many Requests"},
                                                 {431, "Request Header Fields Too Large"},
                                                 {500, "Internal Server Error"},
                                                 {501, "Not Implemented"},
                                                 {502, "Bad Gateway"},
                                                 {503, "Service Unavailable"},
                                                 {504, "Gateway Timeout"}}};
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.status == status; });
  return row == kRows.end() ? std::string_view("Status") : row->phrase;
}

void HttpReply::watch_client() {
  // A client of HTTP/1.0 knows no interim answers.
  connection_.begin_answer(frame_.head.is_http_1_0 ? std::string_view() : kInterim);
}

template <class Visit>
void HttpReply::each_header(const proxy::AnswerHead& head, const Visit& visit) const {
  if (!head.content_type.empty()) visit("content-type", head.content_type);
  visit("x-request-id", frame_.request_id);
  if (openai::dialect_at(frame_.head.target) == openai::Dialect::kAnthropic) {
    visit("request-id", frame_.request_id);  // its SDKs look for it here
  }
  if (!frame_.callers_id.empty()) visit("x-client-request-id", frame_.callers_id);
  for (const auto& header : head.headers) visit(header.name, header.value);
  for (const auto& header : added_) visit(header.name, header.value);
  if (frame_.depends_on_origin) visit("vary", "origin");
  if (!frame_.reader.empty()) {
    visit("access-control-allow-origin", frame_.reader);
    visit("access-control-expose-headers", kExposedHeaders);
  }
  if (keep_alive_ == KeepAlive::kNo) {
    visit("connection", "close");
  } else if (frame_.head.is_http_1_0) {
    visit("connection", "keep-alive");
  }
}

std::string HttpReply::head_text(const proxy::AnswerHead& head) const {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const std::string_view reason = reason_phrase(head.status);
  size_t most = kVersion.size() + base::TextCursor::kNumberRoom + reason.size() + kMarks;
  each_header(head, [&most](std::string_view name, std::string_view value) {
    most += name.size() + value.size() + kMarks;
  });
  std::string text;
  text.reserve(std::max(most, kUsualAnswer));
  text.resize(most);
  base::TextCursor line(text.data());
  line.put(kVersion);
  line.put_number(head.status);
  line.put(' ');
  line.put(reason);
  line.put("\r\n");
  each_header(head, [&line](std::string_view name, std::string_view value) {
    line.put(name);
    line.put(": ");
    line.put(value);
    line.put("\r\n");
  });
  text.resize(static_cast<size_t>(line.at() - text.data()));
  return text;
}

// Of an answer with its length.
std::string HttpReply::head_text(const proxy::AnswerHead& head, size_t body_bytes) const {
  std::string text = head_text(head);
  if (has_body(head.status)) add_header(text, "content-length", std::to_string(body_bytes));
  text.append("\r\n");
  return text;
}

Sent HttpReply::answer_short(const proxy::AnswerHead& head, std::string_view body) {
  std::string text = head_text(head, body.size());
  if (frame_.head.method != "HEAD") text.append(body);
  progress_ = Progress::kBegun;
  const Sent sent = send_end(text);
  if (sent == Sent::kAll) progress_ = Progress::kWhole;
  whole_when_flushed_ = sent == Sent::kBlocked;
  return sent;
}

Awaitable<Sent> HttpReply::flush() {
  return whole_when_flushed_ ? flush_whole() : connection_.flush();
}

Awaitable<Sent> HttpReply::flush_whole() {
  const Sent sent = co_await connection_.flush();
  if (sent == Sent::kAll) progress_ = Progress::kWhole;
  co_return sent;
}

Awaitable<Sent> HttpReply::answer(const proxy::AnswerHead& head, std::string_view body) {
  if (frame_.head.method == "HEAD" || body.size() <= proxy::HeldAnswer::kFreeBytes) {
    Sent sent = answer_short(head, body);
    if (sent == Sent::kBlocked) sent = co_await flush();
    co_return sent;
  }
  const std::string text = head_text(head, body.size());
  progress_ = Progress::kBegun;
  Sent sent = connection_.send(text);
  if (sent == Sent::kBlocked) sent = co_await connection_.flush();
  if (sent == Sent::kAll) sent = co_await connection_.send_in_parts(body);
  if (sent == Sent::kAll) progress_ = Progress::kWhole;
  co_return sent;
}

Awaitable<Sent> HttpReply::answer(const proxy::AnswerHead& head, proxy::HeldAnswer& body) {
  return body.pieces() <= 1 ? answer(head, body.front()) : answer_in_pieces(head, body);
}

Awaitable<Sent> HttpReply::answer_in_pieces(const proxy::AnswerHead& head,
                                            proxy::HeldAnswer& body) {
  const std::string text = head_text(head, body.size());
  progress_ = Progress::kBegun;
  Sent sent = co_await connection_.send_in_parts(text);
  while (sent == Sent::kAll && !body.front().empty()) {
    sent = co_await connection_.send_in_parts(body.front());
    body.drop_front();
  }
  if (sent == Sent::kAll) progress_ = Progress::kWhole;
  co_return sent;
}

void HttpReply::begin_stream(const proxy::AnswerHead& head) {
  streams_ = true;
  // Without chunks only the connection's end can end an answer of unknown length.
  if (frame_.head.is_http_1_0) keep_alive_ = KeepAlive::kNo;
  // And then only a reset can tell that it ended too early.
  ends_with_connection_ = keep_alive_ == KeepAlive::kNo;
  if (ends_with_connection_) connection_.set_ending(Connection::Ending::kReset);
  head_ = head_text(head);
  if (!frame_.head.is_http_1_0) add_header(head_, "transfer-encoding", "chunked");
  head_.append("\r\n");
}

// A stream that is cut off has no last chunk.
std::string_view HttpReply::framed(runtime::Payload& payload, proxy::Piece piece) const {
  if (frame_.head.is_http_1_0) return payload.bytes();
  const bool last = piece == proxy::Piece::kLast;
  if (payload.empty()) return last ? kLastChunk : std::string_view();
  return payload.framed(ChunkSize(payload.size()).line(), last ? "\r\n0\r\n\r\n" : "\r\n");
}

// What ends an answer goes with what others are sent at this moment, unless the connection ends
// too.
Sent HttpReply::send_end(std::string_view bytes) {
  return keep_alive_ == KeepAlive::kYes ? connection_.send_soon(bytes) : connection_.send(bytes);
}

bool HttpReply::write_along(std::string_view bytes) {
  const bool has_chunks = !ends_with_connection_ || !frame_.head.is_http_1_0;
  if (!head_.empty() || !has_chunks || bytes.empty()) return false;
  return connection_.send_along(ChunkSize(bytes.size()).line(), bytes, "\r\n");
}

Sent HttpReply::write(runtime::Payload& payload, proxy::Piece piece) {
  if (piece == proxy::Piece::kCutOff) keep_alive_ = KeepAlive::kNo;
  const std::string_view bytes = framed(payload, piece);
  const bool more = piece == proxy::Piece::kMore;
  Sent sent = Sent::kAll;
  if (!head_.empty()) {
    head_.append(bytes);
    sent = more ? connection_.send_soon(head_) : send_end(head_);
    std::string().swap(head_);
    progress_ = Progress::kBegun;
    connection_.set_probe(frame_.head.is_http_1_0 ? kComment : kChunkedComment);
  } else if (!bytes.empty()) {
    sent = more ? connection_.send_soon(bytes) : send_end(bytes);
  }
  if (piece == proxy::Piece::kLast) progress_ = Progress::kWhole;
  if (piece == proxy::Piece::kCutOff) progress_ = Progress::kCut;
  payload.clear();
  return sent;
}

}  // namespace penstock::http
