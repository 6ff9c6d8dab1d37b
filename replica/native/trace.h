// Which trace a call belongs to.
#pragma once

#include <string_view>

namespace penstock::replica {

// The second field of a W3C traceparent; empty where there is none.
inline std::string_view trace_id_of(std::string_view traceparent) {
  const size_t begin = traceparent.find('-');
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = traceparent.substr(begin + 1);
  return rest.substr(0, rest.find('-'));
}

}  // namespace penstock::replica
