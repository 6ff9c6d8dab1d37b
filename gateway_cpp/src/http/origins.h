// The web pages of other origins that may call, as the config names them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::http {

class Origins {
 public:
  // "https://chat.example" each, or "*" for any.
  explicit Origins(std::vector<std::string> named);

  bool allow(std::string_view origin) const;
  // No page may call, so that no answer depends on who asks.
  bool none() const { return named_.empty(); }

 private:
  const std::vector<std::string> named_;
  const bool any_;
};

}  // namespace penstock::http
