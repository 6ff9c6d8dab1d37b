#include "http/origins.h"

#include <algorithm>

#include "http/syntax.h"

namespace penstock::http {

Origins::Origins(std::vector<std::string> named)
    : named_(std::move(named)),
      any_(std::find(named_.begin(), named_.end(), "*") != named_.end()) {}

bool Origins::allow(std::string_view origin) const {
  if (any_) return !origin.empty();
  return std::any_of(named_.begin(), named_.end(),
                     [origin](const std::string& name) { return same_text(name, origin); });
}

}  // namespace penstock::http
