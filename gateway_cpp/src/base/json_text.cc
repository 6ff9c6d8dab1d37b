#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/utf8_text.h"

namespace penstock::base {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

void put_ascii(TextCursor& out, unsigned char c) {
  constexpr std::array kHex = {'0', '1', '2', '3', '4', '5', '6', '7',
                               '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  switch (c) {
    case '"':
      return out.put("\\\"");
    case '\\':
      return out.put("\\\\");
    case '\n':
      return out.put("\\n");
    case '\r':
      return out.put("\\r");
    case '\t':
      return out.put("\\t");
    default:
      break;
  }
  if (c >= 0x20U && c != 0x7FU) return out.put(static_cast<char>(c));
  out.put("\\u00");
  out.put(kHex[c >> 4U]);
  out.put(kHex[c & 0xFU]);
}

bool stands_for_itself(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20U && byte < 0x7FU && c != '"' && c != '\\';
}

// So many characters at once, by what all processors have for that.
template <std::size_t Size>
using Block = signed char __attribute__((vector_size(Size)));

template <std::size_t Size>
Block<Size> block_at(const char* text) {
  Block<Size> block;
  std::memcpy(&block, text, Size);
  return block;
}

// Whether all of them stand for themselves. Bytes that are not ASCII are below zero.
template <std::size_t Size>
bool all_stand(Block<Size> block) {
  const auto looked_at = (block < 0x20) | (block == '"') | (block == '\\') | (block == 0x7F);
  std::array<std::uint64_t, Size / sizeof(std::uint64_t)> halves{};
  std::memcpy(halves.data(), &looked_at, Size);
  return std::ranges::all_of(halves, [](std::uint64_t half) { return half == 0; });
}

// Where the run of characters that need no look ends; nearly every text is one such run.
std::size_t end_of_plain(std::string_view text, std::size_t i) {
  constexpr std::size_t kBlock = 8;
  while (i + kBlock <= text.size() && all_stand<kBlock>(block_at<kBlock>(text.data() + i))) {
    i += kBlock;
  }
  while (i < text.size() && stands_for_itself(text[i])) ++i;
  return i;
}

// Blocks are copied as they are looked at, up to one that needs a closer look; returns how far that
// is. The last one takes along what was looked at before.
template <std::size_t Size>
std::size_t put_plain_blocks(TextCursor& out, std::string_view text) {
  std::size_t i = 0;
  for (; i < text.size(); i += Size) {
    const std::size_t again = i + Size > text.size() ? i + Size - text.size() : 0;
    const auto block = block_at<Size>(text.data() + i - again);
    if (!all_stand<Size>(block)) break;
    out.put_over(block, again);
  }
  return std::min(i, text.size());
}

std::size_t put_plain(TextCursor& out, std::string_view text) {
  constexpr std::size_t kLong = 16;
  constexpr std::size_t kShort = 8;
  if (text.size() >= kLong) return put_plain_blocks<kLong>(out, text);
  return text.size() >= kShort ? put_plain_blocks<kShort>(out, text) : 0;
}

// What stands at `i` and needs a look, as it is written; returns where the next begins.
std::size_t put_looked_at(TextCursor& out, std::string_view text, std::size_t i) {
  const std::size_t length = utf8_sequence(text, i);
  if (length == 1) {
    put_ascii(out, byte_at(text, i));
  } else {
    out.put(length == 0 ? kReplacement : text.substr(i, length));
  }
  return i + std::max<std::size_t>(length, 1);
}

}  // namespace

void put_json_string(TextCursor& out, std::string_view text) {
  out.put('"');
  for (std::size_t i = put_plain(out, text); i < text.size();) {
    if (stands_for_itself(text[i])) {
      out.put(text[i++]);
    } else {
      i = put_looked_at(out, text, i);
    }
  }
  out.put('"');
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = end_of_plain(text, i);
    out.append(text, i, end - i);
    i = end;
    if (end == text.size()) break;
    std::array<char, kLongestEscape> piece{};
    TextCursor cursor(piece.data());
    i = put_looked_at(cursor, text, end);
    out.append(piece.data(), cursor.at());
  }
  out += '"';
}

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_string(out, text);
  return out;
}

}  // namespace penstock::base
