#include "http/api_key.h"

#include "http/syntax.h"

namespace penstock::http {

std::string_view presented_key(const RequestHead& head) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view given = head.authorization;
  if (given.size() > kScheme.size() && same_text(given.substr(0, kScheme.size()), kScheme)) {
    const std::string_view key = given.substr(kScheme.size());
    return key.substr(std::min(key.find_first_not_of(' '), key.size()));
  }
  return head.x_api_key.empty() ? head.api_key : head.x_api_key;
}

}  // namespace penstock::http
