#include "base/file_text.h"

#include <algorithm>
#include <fstream>
#include <string_view>

namespace penstock::base {

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMost = 1U << 20U;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMost + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.eof()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::optional<std::string> read_token(const std::string& path) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const std::size_t begin = text->find_first_not_of(kSpace);
  if (begin == std::string::npos) return std::nullopt;
  std::string token = text->substr(begin, text->find_last_not_of(kSpace) - begin + 1);
  const auto printable = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!std::all_of(token.begin(), token.end(), printable)) return std::nullopt;
  return token;
}

}  // namespace penstock::base
