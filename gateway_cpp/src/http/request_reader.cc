#include "http/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string_view>

#include "http/strict_head.h"

namespace penstock::http {

namespace {

namespace beast_http = boost::beast::http;

using Parser = beast_http::request_parser<beast_http::string_body>;

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr size_t kKeptBufferBytes = 16UL * 1024;
constexpr size_t kLongestId = 128;

base::Error bad_request(std::string_view fault) {
  return base::make_error(base::Kind::kBadRequest,
                          "This is not a well-formed HTTP request: " + std::string(fault) + ".");
}

base::Error too_slow(std::string_view part, std::chrono::milliseconds limit) {
  return base::make_error(base::Kind::kRequestTimeout,
                          "The request's " + std::string(part) + " did not arrive within " +
                              std::to_string(limit.count()) + " ms. Send it again.");
}

base::Error headers_too_large(size_t limit) {
  return base::make_error(base::Kind::kHeadersTooLarge, "The request's headers are larger than " +
                                                            std::to_string(limit) + " bytes.");
}

base::Error body_too_large(size_t limit) {
  return base::make_error(
      base::Kind::kBodyTooLarge,
      "The request body is larger than " + std::to_string(limit) + " bytes. Send a shorter one.");
}

// A line feed without its carriage return, which lenient readers take for a line's end.
bool has_bare_line_feed(std::string_view text) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

template <class Fields>
std::string field(const Fields& fields, beast_http::field name) {
  return std::string(fields[name]);
}

Incoming take_request(Parser& parser) {
  auto request = parser.release();
  Incoming incoming;
  incoming.method = std::string(request.method_string());
  incoming.target = std::string(request.target());
  incoming.is_http_1_0 = request.version() == 10;
  incoming.keep_alive = request.keep_alive() ? KeepAlive::kYes : KeepAlive::kNo;
  incoming.content_type = field(request, beast_http::field::content_type);
  incoming.origin = field(request, beast_http::field::origin);
  incoming.asked_headers = field(request, beast_http::field::access_control_request_headers);
  incoming.client_request_id = std::string(request["x-request-id"]).substr(0, kLongestId);
  incoming.traceparent = std::string(request["traceparent"]).substr(0, kLongestId);
  incoming.body = std::move(request.body());
  return incoming;
}

bool expects_continue(const Parser& parser) {
  return boost::beast::iequals(parser.get()[beast_http::field::expect], "100-continue");
}

}  // namespace

Awaitable<RequestReader::Outcome> RequestReader::next() {
  idle_ = true;
  timer_.arm(limits_.idle_timeout);
  const bool begun = co_await first_bytes();
  if (!begun) co_return NoMore{};
  idle_ = false;
  timer_.arm(limits_.head_timeout);
  Failed error = co_await head();
  Incoming incoming;
  if (!error) {
    timer_.arm(limits_.body_timeout);
    error = co_await request(incoming);
  }
  timer_.disarm();
  if (connection_.gone()) co_return NoMore{};
  if (error) co_return std::move(*error);
  co_return incoming;
}

// Waits for a request to begin; false: none comes.
Awaitable<bool> RequestReader::first_bytes() {
  skip_blank_lines();
  while (buffer_.empty()) {
    const auto filled = co_await fill();
    if (filled != Filled::kMore) co_return false;
    skip_blank_lines();
  }
  co_return true;
}

// Reads up to the empty line and looks for doubts in what came.
Awaitable<RequestReader::Failed> RequestReader::head() {
  size_t searched = 0;
  for (;;) {
    const size_t end = buffer_.find(kHeadEnd, searched);
    const size_t size = end == std::string::npos ? buffer_.size() : end + kHeadEnd.size();
    if (size > limits_.head_bytes) co_return headers_too_large(limits_.head_bytes);
    const std::string_view head(buffer_.data(), size);
    if (end != std::string::npos) {
      const auto fault = find_fault(head);
      co_return fault ? Failed(bad_request(*fault)) : std::nullopt;
    }
    if (has_bare_line_feed(head)) co_return bad_request("a line ends without a carriage return");
    searched = buffer_.size() < kHeadEnd.size() ? 0 : buffer_.size() - kHeadEnd.size() + 1;
    const auto filled = co_await fill();
    if (filled == Filled::kTooLate) co_return too_slow("header", limits_.head_timeout);
    if (filled == Filled::kGone) co_return std::nullopt;
  }
}

// Parses the head that is there, and the body as it comes.
Awaitable<RequestReader::Failed> RequestReader::request(Incoming& incoming) {
  Parser parser;
  parser.eager(true);
  parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser.body_limit(limits_.body_bytes);
  bool continued = false;
  for (;;) {
    boost::system::error_code ec;
    buffer_.erase(0, parser.put(asio::buffer(buffer_), ec));
    if (ec == beast_http::error::body_limit) co_return body_too_large(limits_.body_bytes);
    if (ec && ec != beast_http::error::need_more) co_return bad_request(ec.message());
    if (parser.is_done()) break;
    if (!continued && expects_continue(parser)) {
      continued = true;
      if (connection_.send(kContinue) == Sent::kBlocked) co_await connection_.flush();
    }
    const auto filled = co_await fill();
    if (filled == Filled::kTooLate) co_return too_slow("body", limits_.body_timeout);
    if (filled == Filled::kGone) co_return std::nullopt;
  }
  if (buffer_.empty() && buffer_.capacity() > kKeptBufferBytes) std::string().swap(buffer_);
  incoming = take_request(parser);
  co_return std::nullopt;
}

// Waits for more bytes.
Awaitable<RequestReader::Filled> RequestReader::fill() {
  for (;;) {
    const auto bytes = connection_.read();
    if (!bytes.empty()) {
      buffer_.append(bytes);
      co_return Filled::kMore;
    }
    if (connection_.gone()) co_return Filled::kGone;
    if (timer_.fired()) co_return Filled::kTooLate;
    co_await connection_.signal().wait();
  }
}

// Some clients send an empty line after a body.
void RequestReader::skip_blank_lines() {
  size_t blank = 0;
  while (std::string_view(buffer_).substr(blank).starts_with("\r\n")) blank += 2;
  buffer_.erase(0, blank);
}

}  // namespace penstock::http
