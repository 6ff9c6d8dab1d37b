#include "base/trace_context.h"

#include <algorithm>
#include <charconv>

#include "base/hex_text.h"
#include "base/printable.h"

namespace penstock::base {
namespace {

// 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
constexpr std::size_t kTraceId = 3;
constexpr std::size_t kTraceIdDigits = 32;
constexpr std::size_t kParentId = 36;
constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kFlags = 53;
constexpr std::size_t kLength = 55;
constexpr std::size_t kLongest = 256;  // of later versions
constexpr std::uint64_t kSampled = 1;  // of the flags

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

std::uint64_t number_of(std::string_view hex) {
  std::uint64_t number = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
  return number;
}

}  // namespace

// The steps of SplitMix64, which are as far apart as random numbers.
std::uint64_t TraceContext::derived(std::uint64_t number) const {
  std::uint64_t id = span + number * 0x9e3779b97f4a7c15ULL;
  id = (id ^ (id >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  id = (id ^ (id >> 27U)) * 0x94d049bb133111ebULL;
  return std::max<std::uint64_t>(id ^ (id >> 31U), 1);
}

bool is_trace_parent(std::string_view text) {
  if (text.size() < kLength || text.size() > kLongest) return false;
  const std::string_view version = text.substr(0, 2);
  if (!is_hex(version) || version == "ff") return false;
  if (text[2] != '-' || text[kParentId - 1] != '-' || text[kFlags - 1] != '-') return false;
  if (!is_id(text.substr(kTraceId, kTraceIdDigits)) || !is_id(text.substr(kParentId, kIdDigits)))
    return false;
  if (!is_hex(text.substr(kFlags, 2))) return false;
  const std::string_view rest = text.substr(kLength);
  return rest.empty() || (version != "00" && rest.front() == '-' && is_visible_ascii(rest));
}

TraceParent::TraceParent(const TraceContext& context, std::uint64_t span) {
  static_assert(sizeof(text_) == kLength);
  TextCursor cursor(text_.data());
  cursor.put("00-");
  put_hex(cursor, context.id_high);
  put_hex(cursor, context.id_low);
  cursor.put('-');
  put_hex(cursor, span);
  cursor.put(context.sampled ? "-01" : "-00");
}

std::uint64_t TraceContexts::fresh_id() { return std::max<std::uint64_t>(random_(), 1); }

TraceContext TraceContexts::accept(std::string_view text) {
  if (!is_trace_parent(text)) {
    return {.id_high = fresh_id(), .id_low = fresh_id(), .span = fresh_id()};
  }
  return {.id_high = number_of(text.substr(kTraceId, kIdDigits)),
          .id_low = number_of(text.substr(kTraceId + kIdDigits, kIdDigits)),
          .parent = number_of(text.substr(kParentId, kIdDigits)),
          .span = fresh_id(),
          .sampled = (number_of(text.substr(kFlags, 2)) & kSampled) != 0};
}

}  // namespace penstock::base
