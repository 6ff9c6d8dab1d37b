// What a page of metrics says.
#pragma once

#include <string>
#include <string_view>

namespace penstock::test {

inline constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c";

inline bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace penstock::test
