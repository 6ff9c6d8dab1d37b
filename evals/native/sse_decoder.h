// Turns the bytes of an event stream into events. Pure; one per answer, in the thread of its
// connection.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace penstock::evals {

enum class EventKind { kData, kDone, kError };

// What an OpenAI event's data means: the end mark, an in-stream error object, or anything else.
EventKind classify(std::string_view data);

class SseDecoder {
 public:
  using OnEvent = std::function<void(std::string_view data)>;

  // Calls on_event once per complete event that has data; comments and other fields are no events.
  void feed(std::string_view bytes, const OnEvent& on_event);
  void reset();

 private:
  void take_line(std::string_view line, const OnEvent& on_event);

  std::string line_;  // a line that has not ended yet
  std::string data_;
  bool has_data_ = false;
};

}  // namespace penstock::evals
