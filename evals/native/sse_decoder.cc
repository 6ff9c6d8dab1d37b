#include "sse_decoder.h"

namespace penstock::evals {

EventKind classify(std::string_view data) {
  if (data == "[DONE]") return EventKind::kDone;
  return data.starts_with("{\"error\"") ? EventKind::kError : EventKind::kData;
}

void SseDecoder::feed(std::string_view bytes, const OnEvent& on_event) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      line_.append(bytes);
      return;
    }
    if (line_.empty()) {
      take_line(bytes.substr(0, end), on_event);
    } else {
      line_.append(bytes.substr(0, end));
      take_line(line_, on_event);
      line_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

void SseDecoder::reset() {
  line_.clear();
  data_.clear();
  has_data_ = false;
}

void SseDecoder::take_line(std::string_view line, const OnEvent& on_event) {
  constexpr std::string_view kData = "data:";
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) {
    if (has_data_) on_event(data_);
    data_.clear();
    has_data_ = false;
  } else if (line.starts_with(kData)) {
    line.remove_prefix(kData.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }
}

}  // namespace penstock::evals
