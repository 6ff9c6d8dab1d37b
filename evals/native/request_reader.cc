#include "request_reader.h"

#include <algorithm>
#include <charconv>

#include "text.h"

namespace penstock::evals {
namespace {

size_t content_length(std::string_view head) {
  constexpr std::string_view kName = "content-length:";
  size_t length = 0;
  while (!head.empty()) {
    const std::string_view field = next_line(head);
    if (same_ignoring_case(field.substr(0, kName.size()), kName)) {
      const std::string_view value = trimmed(field.substr(kName.size()));
      std::from_chars(value.data(), value.data() + value.size(), length);
    }
  }
  return length;
}

}  // namespace

size_t RequestReader::feed(std::string_view bytes) {
  size_t complete = 0;
  while (!bytes.empty()) {
    if (in_body_) {
      const size_t used = std::min(body_left_, bytes.size());
      body_left_ -= used;
      bytes.remove_prefix(used);
    } else {
      bytes.remove_prefix(feed_head(bytes));
    }
    if (in_body_ && body_left_ == 0) {
      in_body_ = false;
      ++complete;
    }
  }
  return complete;
}

size_t RequestReader::feed_head(std::string_view bytes) {
  const size_t before = head_.size();
  head_.append(bytes);
  const size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  if (end == std::string::npos) return bytes.size();
  body_left_ = content_length(std::string_view(head_).substr(0, end));
  in_body_ = true;
  head_.clear();
  return end + 4 - before;
}

}  // namespace penstock::evals
