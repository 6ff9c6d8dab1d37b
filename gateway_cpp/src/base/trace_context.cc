#include "base/trace_context.h"

#include <algorithm>

#include "base/hex_text.h"

namespace penstock::base {
namespace {

// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
constexpr std::size_t kTraceId = 3;
constexpr std::size_t kTraceIdDigits = 32;
constexpr std::size_t kParentId = 36;
constexpr std::size_t kParentIdDigits = 16;
constexpr std::size_t kFlags = 53;
constexpr std::size_t kLength = 55;
constexpr std::size_t kLongest = 256;  // of later versions

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

bool is_trace_parent(std::string_view text) {
  if (text.size() < kLength || text.size() > kLongest) return false;
  const std::string_view version = text.substr(0, 2);
  if (!is_hex(version) || version == "ff") return false;
  if (text[2] != '-' || text[kParentId - 1] != '-' || text[kFlags - 1] != '-') return false;
  if (!is_id(text.substr(kTraceId, kTraceIdDigits)) ||
      !is_id(text.substr(kParentId, kParentIdDigits)))
    return false;
  if (!is_hex(text.substr(kFlags, 2))) return false;
  const std::string_view rest = text.substr(kLength);
  return rest.empty() || (version != "00" && rest.front() == '-' && is_printable(rest));
}

std::string_view trace_id_of(std::string_view parent) {
  return parent.substr(kTraceId, kTraceIdDigits);
}

std::string_view parent_id_of(std::string_view parent) {
  return parent.empty() ? parent : parent.substr(kParentId, kParentIdDigits);
}

bool is_sampled(std::string_view parent) {
  constexpr std::string_view kOdd = "13579bdf";
  return !parent.empty() && kOdd.find(parent[kFlags + 1]) != std::string_view::npos;
}

std::string TraceParents::accept(std::string_view text) {
  if (is_trace_parent(text)) return std::string(text);
  return fresh();
}

std::string TraceParents::fresh() {
  const auto id = [this] { return std::max<std::uint64_t>(random_(), 1); };
  std::string text(kLength, '0');
  TextCursor cursor(text.data());
  cursor.put("00-");
  put_hex(cursor, id());
  put_hex(cursor, id());
  cursor.put('-');
  put_hex(cursor, id());
  cursor.put("-01");
  return text;
}

}  // namespace penstock::base
