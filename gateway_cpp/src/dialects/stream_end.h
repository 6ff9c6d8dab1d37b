// How a stream ends, in the words of the endpoint that was asked: which bytes make it whole, and
// what one that breaks is told. One for each request. No sockets.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "openai/endpoints.h"
#include "openai/response_stream.h"

namespace penstock::dialects {

class StreamEnd {
 public:
  explicit StreamEnd(openai::Dialect dialect);

  // Whether these events may end a whole answer; where it is false, they do not.
  bool may_end(std::string_view events) const;

  // Looks at what goes to the client next: whole events.
  void note(std::string_view events);
  // What was noted last ends a whole answer.
  bool reached() const { return bytes_ > 0; }
  // How many of its bytes say so: those behind its other events.
  std::size_t bytes() const { return bytes_; }

  // What a stream that is not whole ends with: events that say why.
  std::string broken(const base::Error& error, const openai::Answerer& answerer) const;

 private:
  const openai::Dialect dialect_;
  std::size_t bytes_ = 0;
  std::unique_ptr<openai::ResponseStream> response_;  // of that dialect alone
};

}  // namespace penstock::dialects
