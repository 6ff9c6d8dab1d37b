// How a body gets to a collector, as an interface: over HTTP, or to a test.
#pragma once

#include <chrono>
#include <string>

namespace penstock::observe {

// What came of a POST.
struct PostAnswer {
  unsigned status = 0;  // 0: none came
  std::string body{};
  std::chrono::milliseconds retry_after{0};  // as the collector asks; 0: it does not
  std::string error{};                       // why none came
};

class HttpPost {
 public:
  virtual ~HttpPost() = default;
  // Waits for the answer, at most so long.
  virtual PostAnswer send(const std::string& body, std::chrono::milliseconds within) = 0;
  // What is under way ends after at most so long, whatever it was given. Any thread.
  virtual void end_within(std::chrono::milliseconds left) = 0;
};

}  // namespace penstock::observe
