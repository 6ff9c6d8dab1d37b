#include "base/file_text.h"

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "base/printable.h"

namespace penstock::base {

namespace {

constexpr std::string_view kWanted = "a file with a token, one line of printable text";

Error not_a_token(std::string_view what) { return make_error(Kind::kConfig, std::string(what)); }

// Empty if it is a file that only its owner can use.
std::string why_not_private(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::string(kWanted);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777U);
  return "private: it has mode " + std::string(mode.data()) +
         ", so that others than its owner can use it; make the token anew, or `chmod 600 " + path +
         "` if nobody has read it";
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMost = 1U << 20U;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMost + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.eof()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<std::string> read_token(const std::string& path) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::string open = why_not_private(path);
  if (!open.empty()) return not_a_token(open);
  const auto text = read_file(path);
  if (!text) return not_a_token(kWanted);
  const std::size_t begin = text->find_first_not_of(kSpace);
  if (begin == std::string::npos) return not_a_token(kWanted);
  std::string token = text->substr(begin, text->find_last_not_of(kSpace) - begin + 1);
  if (!is_visible_ascii(token)) return not_a_token(kWanted);
  return token;
}

}  // namespace penstock::base
