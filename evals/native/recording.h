// One recorded answer, cut into what SseSource sends. Pure value, shared by all its connections.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::evals {

struct BadRecording : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Recording {
 public:
  // `body` is an event stream's body, byte for byte. Throws BadRecording when it does not end with
  // [DONE].
  static Recording of_stream(std::string_view body);
  static Recording of_unary(std::string_view body);

  // The HTTP head of a stream.
  static std::string_view stream_head();

  // The whole answer: head and body, streams with one chunk per event.
  const std::string& whole() const { return whole_; }

  // The chunk of event number `step` of an answer that never ends: the recorded first event once,
  // then those between the first and the last over and over. Throws BadRecording when there is
  // nothing between them.
  const std::string& endless(size_t step) const;

 private:
  std::string whole_;
  std::vector<std::string> chunks_;  // one per data event, framed, without [DONE]
};

}  // namespace penstock::evals
