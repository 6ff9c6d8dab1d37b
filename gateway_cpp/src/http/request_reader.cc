#include "http/request_reader.h"

#include <algorithm>

#include "http/chunk_decoder.h"
#include "http/content_coding.h"
#include "http/read_errors.h"
#include "runtime/room_wait.h"

namespace penstock::http {

namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr size_t kKeptBufferBytes = 16UL * 1024;
constexpr size_t kBlankBytes = 16;         // before a request
constexpr size_t kMostRead = 64UL * 1024;  // what one read may bring
constexpr size_t kParserPadding = 64;      // what the JSON parser wants behind a body
constexpr std::chrono::milliseconds kHoldAndWait{2'000};

// A line feed without its carriage return, which lenient readers take for a line's end.
bool has_bare_line_feed(std::string_view text, size_t from) {
  for (size_t at = text.find('\n', from); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

// Who is to make room for a body: its client itself, or others.
base::Error no_room_in(const runtime::BodyShare& share) {
  return share.lacks_own() ? own_room_used_up(share.part()->total()) : no_room();
}

}  // namespace

Awaitable<RequestReader::Incoming> RequestReader::next() {
  idle_ = reads_head_ = true;
  blank_ = 0;
  timer_.arm(has_asked_ ? limits_.idle_timeout
                        : std::min(limits_.idle_timeout, limits_.head_timeout));
  for (bool begun = skip_blank_lines(); !begun; begun = skip_blank_lines()) {
    const auto filled = co_await fill();
    if (filled != Filled::kMore || blank_ > kBlankBytes) {
      idle_ = false;
      if (owes_answer()) co_return Incoming(AnswerFirst{});
      co_return Incoming(NoMore{});
    }
    keep(fresh_);
  }
  // Requests that came together have their turns too.
  if (connection_.turn_is_over()) co_await connection_.yield();
  idle_ = false;
  searched_ = 0;
  std::optional<Incoming> outcome = whole_head();
  if (!outcome) {
    timer_.arm(limits_.head_timeout);
    outcome = co_await rest_of_head();
  }
  timer_.disarm();
  reads_head_ = false;
  has_asked_ = true;
  connection_.count_request();
  if (connection_.gone()) co_return NoMore{};
  co_return *std::move(outcome);
}

// Looks for the empty line, and for doubts in what came; nothing: more has to come.
std::optional<RequestReader::Incoming> RequestReader::whole_head() {
  const std::string_view bytes = unread();
  const size_t overlap = std::min(searched_, kHeadEnd.size() - 1);
  const size_t end = bytes.find(kHeadEnd, searched_ - overlap);
  const size_t size = end == std::string_view::npos ? bytes.size() : end + kHeadEnd.size();
  if (size > limits_.head_bytes) return oversized_head(bytes.substr(0, size));
  if (has_bare_line_feed(bytes.substr(0, size), searched_)) {
    return Unreadable{bad_request("a line ends without a carriage return")};
  }
  if (end != std::string_view::npos) return take_head(size);
  searched_ = bytes.size();
  return std::nullopt;
}

Awaitable<RequestReader::Incoming> RequestReader::rest_of_head() {
  for (;;) {
    const auto filled = co_await fill();
    if (filled == Filled::kTooLate) co_return Unreadable{too_slow("header", limits_.head_timeout)};
    if (filled == Filled::kGone) co_return NoMore{};
    if (filled == Filled::kAnswerFirst) co_return AnswerFirst{};
    keep(fresh_);
    if (auto outcome = whole_head()) co_return *std::move(outcome);
  }
}

RequestReader::Incoming RequestReader::take_head(size_t size) {
  head_.assign(unread().substr(0, size));
  use(size);
  auto read = read_head(head_);
  if (const auto* fault = std::get_if<HeadFault>(&read))
    return Unreadable{bad_request(fault->what)};
  return std::get<RequestHead>(read);
}

// A page is to see why it is refused: whose it is stands in the lines that have come whole.
RequestReader::Incoming RequestReader::oversized_head(std::string_view begun) {
  constexpr std::string_view kLineEnd = kHeadEnd.substr(2);
  Unreadable unreadable{headers_too_large(limits_.head_bytes)};
  const size_t last = begun.rfind(kLineEnd);
  if (last == std::string_view::npos) return unreadable;
  head_.assign(begun.substr(0, last)).append(kHeadEnd);
  const auto read = read_head(head_);
  if (const auto* head = std::get_if<RequestHead>(&read)) unreadable.head = *head;
  return unreadable;
}

bool RequestReader::take_body(const RequestHead& head, runtime::BodyShare& share,
                              std::string& body) {
  const uint64_t length = head.content_length.value_or(0);
  const bool is_here = length > 0 && length <= std::min(limits_.body_bytes, unread().size());
  if (!is_here || coding_of(head) != Coding::kIdentity) return false;
  if (!find_room(length, length, share, body)) return false;
  body.append(unread().substr(0, length));
  use(length);
  return true;
}

Awaitable<base::MaybeError> RequestReader::body(const RequestHead& head, runtime::BodyShare& share,
                                                std::string& body) {
  if (!head.has_body()) co_return std::nullopt;
  const uint64_t length = head.content_length.value_or(0);
  if (length > limits_.body_bytes) co_return body_too_large(limits_.body_bytes);
  pace_.begin();
  pace_.note(unread().size());  // what came behind the head
  if (head.expects_continue && unread().empty()) co_await go_on();
  base::MaybeError failed;
  if (coding_of(head) == Coding::kGzip) {
    failed = co_await packed_body(head, share, body);
  } else if (head.is_chunked) {
    failed = co_await chunked_body(share, body);
  } else {
    failed = co_await counted_body(length, share, body);
  }
  timer_.disarm();
  co_return failed;
}

Awaitable<void> RequestReader::go_on() {
  if (connection_.send(kContinue) == Sent::kBlocked) co_await connection_.flush();
}

Awaitable<base::MaybeError> RequestReader::counted_body(uint64_t length, runtime::BodyShare& share,
                                                        std::string& body) {
  for (;;) {
    const auto left = static_cast<size_t>(length - body.size());
    const size_t next = std::min(left, std::max(kMostRead, unread().size()));
    const auto most = static_cast<size_t>(length);
    base::MaybeError failed;
    if (!find_room(next, most, share, body)) failed = co_await make_room(next, most, share, body);
    if (failed) co_return failed;
    const size_t held = std::min(left, unread().size());
    body.append(unread().substr(0, held));
    use(held);
    if (body.size() == length) co_return std::nullopt;
    const auto filled = co_await fill();
    if (filled == Filled::kTooLate) co_return pace_.fault();
    if (filled == Filled::kGone) co_return std::nullopt;
    const size_t taken = std::min(static_cast<size_t>(length - body.size()), fresh_.size());
    body.append(fresh_.substr(0, taken));
    keep(fresh_.substr(taken));
  }
}

Awaitable<base::MaybeError> RequestReader::chunked_body(runtime::BodyShare& share,
                                                        std::string& body) {
  ChunkDecoder decoder(limits_.body_bytes);
  for (;;) {
    const size_t next = std::max(kMostRead, unread().size());
    auto failed = co_await make_room(next, limits_.body_bytes, share, body);
    if (failed) co_return failed;
    use(decoder.feed(unread(), body));
    while (decoder.state() == ChunkDecoder::State::kMore && unread().empty()) {
      const auto filled = co_await fill();
      if (filled == Filled::kTooLate) co_return pace_.fault();
      if (filled == Filled::kGone) co_return std::nullopt;
      keep(fresh_);
    }
    switch (decoder.state()) {
      case ChunkDecoder::State::kMore:
        break;
      case ChunkDecoder::State::kDone:
        fit(share, body);
        co_return std::nullopt;
      case ChunkDecoder::State::kFault:
        co_return bad_request(decoder.fault());
      case ChunkDecoder::State::kTooLarge:
        co_return body_too_large(limits_.body_bytes);
    }
  }
}

void RequestReader::fit(runtime::BodyShare& share, std::string& body) {
  if (body.capacity() >= 2 * (body.size() + kParserPadding)) {
    std::string fitted;
    fitted.reserve(body.size() + kParserPadding);
    fitted.append(body);
    body.swap(fitted);
  }
  share.shrink_to(body.capacity());
}

// Room for so many bytes more in a body of `most` bytes at most; false: there is none now.
bool RequestReader::find_room(size_t bytes, size_t most, runtime::BodyShare& share,
                              std::string& body) const {
  const size_t wanted = body.size() + bytes + kParserPadding;
  if (wanted <= body.capacity()) return true;
  const size_t capacity = std::max(wanted, std::min(2 * body.capacity(), most + kParserPadding));
  if (!share.grow_to(capacity + beside_)) return false;
  body.reserve(capacity);
  return true;
}

// The same, waiting for others' bodies to go.
Awaitable<base::MaybeError> RequestReader::make_room(size_t bytes, size_t most,
                                                     runtime::BodyShare& share, std::string& body) {
  runtime::RoomWait room(connection_.executor(), connection_.signal());
  // Who holds a part of what all wait for gives it back soon, or nobody would get on.
  runtime::TimerWheel::Timer patience(connection_.timers(), connection_.signal());
  if (!body.empty()) patience.arm(kHoldAndWait);
  while (!find_room(bytes, most, share, body)) {
    if (pace_.is_over() || patience.fired()) co_return no_room_in(share);
    if (connection_.gone() || connection_.cut_short()) co_return std::nullopt;
    if (room.must_try_again(share)) continue;
    connection_.rest();
    co_await connection_.signal().wait();
    pace_.excuse();
  }
  co_return std::nullopt;
}

// Waits for more bytes.
Awaitable<RequestReader::Filled> RequestReader::fill() {
  for (;;) {
    if (connection_.gone() || connection_.cut_short()) co_return Filled::kGone;
    if (reads_head_ && owes_answer()) co_return Filled::kAnswerFirst;
    if (reads_head_ ? timer_.fired() : pace_.is_late()) co_return Filled::kTooLate;
    if (connection_.turn_is_over()) {
      co_await connection_.yield();
      continue;
    }
    fresh_ = connection_.read();
    pace_.note(fresh_.size());
    if (!fresh_.empty()) co_return Filled::kMore;
    if (connection_.gone()) co_return Filled::kGone;
    connection_.rest();
    co_await connection_.signal().wait();
  }
}

void RequestReader::use(size_t bytes) {
  begin_ += bytes;
  if (begin_ < buffer_.size()) return;
  begin_ = 0;
  buffer_.clear();
  if (buffer_.capacity() > kKeptBufferBytes) std::string().swap(buffer_);
}

void RequestReader::keep(std::string_view bytes) {
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes);
}

// Some clients send an empty line after a body. Whether a request has begun: half an empty line is
// not known yet.
bool RequestReader::skip_blank_lines() {
  while (unread().starts_with(kHeadEnd.substr(0, 2))) {
    use(2);
    blank_ += 2;
  }
  return !unread().empty() && unread() != "\r";
}

}  // namespace penstock::http
