#include "response_reader.h"

#include <algorithm>
#include <charconv>

#include "text.h"

namespace penstock::evals {

size_t ResponseReader::feed(std::string_view bytes, const OnBody& on_body) {
  size_t used = 0;
  while (used < bytes.size()) {
    if (state_ == State::kHead) {
      used += feed_head(bytes.substr(used));
    } else if (state_ == State::kBody) {
      used += feed_body(bytes.substr(used), on_body);
    } else {
      break;
    }
  }
  return used;
}

void ResponseReader::end_of_input() {
  if (state_ == State::kDone) return;
  const bool whole = state_ == State::kBody && framing_ == Framing::kUntilClose;
  state_ = whole ? State::kDone : State::kBroken;
}

void ResponseReader::reset() {
  state_ = State::kHead;
  head_ = ResponseHead{};
  framing_ = Framing::kUntilClose;
  part_ = ChunkPart::kSize;
  left_ = 0;
  line_.clear();
}

size_t ResponseReader::feed_head(std::string_view bytes) {
  const size_t before = line_.size();
  line_.append(bytes);
  const size_t end = line_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  if (end == std::string::npos) return bytes.size();
  const size_t used = end + 4 - before;
  const std::string head = line_.substr(0, end);
  line_.clear();
  parse_head(head);
  return used;
}

void ResponseReader::parse_head(std::string_view head) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const std::string_view status = next_line(head);
  const char* const first = status.data() + std::min(kVersion.size(), status.size());
  const char* const last = status.data() + status.size();
  if (!status.starts_with(kVersion) ||
      std::from_chars(first, last, head_.status).ec != std::errc{}) {
    state_ = State::kBroken;
    return;
  }
  state_ = State::kBody;
  while (!head.empty()) {
    const std::string_view field = next_line(head);
    const size_t colon = field.find(':');
    if (colon != std::string_view::npos) {
      parse_field(field.substr(0, colon), trimmed(field.substr(colon + 1)));
    }
  }
  if (framing_ == Framing::kLength && left_ == 0) state_ = State::kDone;
}

void ResponseReader::parse_field(std::string_view name, std::string_view value) {
  if (same_ignoring_case(name, "content-length")) {
    framing_ = Framing::kLength;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), left_);
    if (parsed.ec != std::errc{}) state_ = State::kBroken;
  } else if (same_ignoring_case(name, "transfer-encoding")) {
    framing_ = Framing::kChunked;
  } else if (same_ignoring_case(name, "content-type")) {
    head_.event_stream = value.starts_with("text/event-stream");
  } else if (same_ignoring_case(name, "connection")) {
    head_.keep_alive = !same_ignoring_case(value, "close");
  }
}

size_t ResponseReader::feed_body(std::string_view bytes, const OnBody& on_body) {
  if (framing_ == Framing::kChunked) return feed_chunked(bytes, on_body);
  if (framing_ == Framing::kUntilClose) {
    on_body(bytes);
    return bytes.size();
  }
  const std::string_view piece = bytes.substr(0, left_);
  on_body(piece);
  left_ -= piece.size();
  if (left_ == 0) state_ = State::kDone;
  return piece.size();
}

size_t ResponseReader::feed_chunked(std::string_view bytes, const OnBody& on_body) {
  if (part_ != ChunkPart::kData) return feed_line(bytes);
  const std::string_view piece = bytes.substr(0, left_);
  on_body(piece);
  left_ -= piece.size();
  if (left_ == 0) part_ = ChunkPart::kDataEnd;
  return piece.size();
}

size_t ResponseReader::feed_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  if (end == std::string_view::npos) {
    line_.append(bytes);
    return bytes.size();
  }
  line_.append(bytes.substr(0, end));
  if (line_.ends_with('\r')) line_.pop_back();
  finish_line();
  line_.clear();
  return end + 1;
}

void ResponseReader::finish_line() {
  if (part_ == ChunkPart::kSize) {
    const auto parsed = std::from_chars(line_.data(), line_.data() + line_.size(), left_, 16);
    if (parsed.ec != std::errc{}) state_ = State::kBroken;
    part_ = left_ == 0 ? ChunkPart::kTrailer : ChunkPart::kData;
  } else if (part_ == ChunkPart::kDataEnd) {
    if (!line_.empty()) state_ = State::kBroken;
    part_ = ChunkPart::kSize;
  } else if (line_.empty()) {
    state_ = State::kDone;
  }
}

}  // namespace penstock::evals
