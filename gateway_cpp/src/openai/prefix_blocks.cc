#include "openai/prefix_blocks.h"

#include <string>

namespace penstock::openai {

namespace {

constexpr std::size_t kBlockBytes = 256;
constexpr std::size_t kMostBlocks = 128;
constexpr std::uint64_t kPrime = 0x100000001b3U;  // of FNV-1a

// From behind the field's name on; clients write the same field in the same way each time, so the
// first text that looks like it will do.
std::string_view behind_field(std::string_view body, std::string_view field) {
  const std::string key = '"' + std::string(field) + '"';
  const std::size_t at = body.find(key);
  return at == std::string_view::npos ? std::string_view() : body.substr(at + key.size());
}

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::vector<std::uint64_t> prefix_blocks(std::string_view body, const Endpoint& endpoint,
                                         std::uint64_t seed) {
  std::vector<std::uint64_t> blocks;
  if (endpoint.prompt_field.empty()) return blocks;
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  std::size_t taken = 0;
  bool in_string = false;
  bool escaped = false;
  for (const char c : behind_field(body, endpoint.prompt_field)) {
    if (!in_string && is_space(c)) continue;
    if (c == '"' && !escaped) in_string = !in_string;
    escaped = in_string && c == '\\' && !escaped;
    hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
    if (++taken % kBlockBytes != 0) continue;
    blocks.push_back(hash);
    if (blocks.size() == kMostBlocks) break;
  }
  return blocks;
}

}  // namespace penstock::openai
