#include "recording.h"

#include <cstdio>

namespace penstock::evals {
namespace {

constexpr std::string_view kEventEnd = "\n\n";
constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string chunk_of(std::string_view bytes) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + std::string(bytes) + "\r\n";
}

}  // namespace

std::string_view Recording::stream_head() {
  return "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
         "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
}

Recording Recording::of_stream(std::string_view body) {
  if (!body.ends_with(kDone)) throw BadRecording("the recorded stream does not end with [DONE]");
  Recording recording;
  std::string_view events = body.substr(0, body.size() - kDone.size());
  while (!events.empty()) {
    const size_t end = events.find(kEventEnd);
    if (end == std::string_view::npos) throw BadRecording("an event without an empty line");
    recording.chunks_.push_back(chunk_of(events.substr(0, end + kEventEnd.size())));
    events.remove_prefix(end + kEventEnd.size());
  }
  recording.whole_ = stream_head();
  for (const std::string& chunk : recording.chunks_) recording.whole_ += chunk;
  recording.whole_ += chunk_of(kDone) + "0\r\n\r\n";
  return recording;
}

Recording Recording::of_unary(std::string_view body) {
  Recording recording;
  recording.whole_ = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  return recording;
}

const std::string& Recording::endless(size_t step) const {
  if (chunks_.size() < 3) throw BadRecording("an endless answer needs three recorded events");
  return step == 0 ? chunks_.front() : chunks_[1 + (step - 1) % (chunks_.size() - 2)];
}

}  // namespace penstock::evals
