// Finds where HTTP/1.1 requests end, in bytes as they arrive. It reads nothing of them but their
// length: SseSource answers all alike. Pure; one per server connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::evals {

class RequestReader {
 public:
  // Returns how many requests these bytes completed.
  size_t feed(std::string_view bytes);

 private:
  size_t feed_head(std::string_view bytes);

  std::string head_;
  bool in_body_ = false;
  size_t body_left_ = 0;
};

}  // namespace penstock::evals
