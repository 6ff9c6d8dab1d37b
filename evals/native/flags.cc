#include "flags.h"

#include <charconv>
#include <fstream>
#include <sstream>

namespace penstock::evals {

Flags::Flags(int count, const char* const* words, const std::set<std::string>& known) {
  for (int i = 1; i < count; i += 2) {
    const std::string word = words[i];
    if (!word.starts_with("--") || !known.contains(word.substr(2))) {
      throw BadFlag("unknown flag \"" + word + "\"");
    }
    if (i + 1 == count) throw BadFlag(word + " needs a value");
    values_[word.substr(2)] = words[i + 1];
  }
}

const std::string& Flags::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw BadFlag("--" + name + " is missing");
  return found->second;
}

std::string Flags::text(const std::string& name, const std::string& otherwise) const {
  return values_.contains(name) ? text(name) : otherwise;
}

uint64_t Flags::number(const std::string& name) const {
  const std::string& value = text(name);
  const char* const end = value.data() + value.size();
  uint64_t parsed = 0;
  const auto result = std::from_chars(value.data(), end, parsed);
  if (result.ec != std::errc{} || result.ptr != end) {
    throw BadFlag("--" + name + " takes a whole number, not \"" + value + "\"");
  }
  return parsed;
}

uint64_t Flags::number(const std::string& name, uint64_t otherwise) const {
  return values_.contains(name) ? number(name) : otherwise;
}

std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) throw BadFlag("cannot read \"" + path + "\"");
  return content.str();
}

}  // namespace penstock::evals
