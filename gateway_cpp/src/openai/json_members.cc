#include "openai/json_members.h"

#include <algorithm>

namespace penstock::openai {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

void append_member(std::string& out, std::string_view key, std::string_view value) {
  if (out.size() > 1) out += ',';
  out.append("\"").append(key).append("\":").append(value);
}

}  // namespace

MemberReader::MemberReader(std::string_view object) : text_(object) {
  skip_space();
  if (!skip('{')) at_ = text_.size();
}

bool MemberReader::next() {
  skip_space();
  if (skip(',')) skip_space();
  const std::size_t key = at_;
  if (!skip_string()) return false;
  key_ = text_.substr(key + 1, at_ - key - 2);
  skip_space();
  if (!skip(':')) return false;
  skip_space();
  const std::size_t value = at_;
  if (!skip_value()) return false;
  value_ = text_.substr(value, at_ - value);
  return true;
}

void MemberReader::skip_space() {
  at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size());
}

bool MemberReader::skip(char wanted) {
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

bool MemberReader::skip_string() {
  if (!skip('"')) return false;
  for (std::size_t from = at_; (at_ = text_.find('"', at_)) != std::string_view::npos; ++at_) {
    std::size_t plain = at_;
    while (plain > from && text_[plain - 1] == '\\') --plain;
    if ((at_ - plain) % 2 == 0) return skip('"');
    from = at_ + 1;  // what is behind an escaped quote begins anew
  }
  at_ = text_.size();
  return false;
}

// Brackets are counted and not matched: an engine's own JSON needs no more.
bool MemberReader::skip_value() {
  const std::size_t start = at_;
  std::size_t depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      if (!skip_string()) return false;
      if (depth == 0) return true;
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || kSpace.find(c) != std::string_view::npos)) break;
    ++at_;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return true;
  }
  return depth == 0 && at_ > start;
}

std::string with_members(std::string_view object, std::span<const Member> members) {
  std::string out = "{";
  for (MemberReader own(object); own.next();) {
    const auto other = std::ranges::find(members, own.key(), &Member::key);
    if (other == members.end()) append_member(out, own.key(), own.value());
  }
  for (const Member& member : members) append_member(out, member.key, member.value);
  return out + "}";
}

}  // namespace penstock::openai
