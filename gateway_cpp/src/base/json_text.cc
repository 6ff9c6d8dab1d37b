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

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::uint64_t word_at(std::string_view text, std::size_t i) {
  std::uint64_t word = 0;
  std::memcpy(&word, text.data() + i, sizeof word);
  return word;
}

// Whether all eight bytes of a word stand for themselves: each test sets the high bit of a byte
// that fails it, or of one behind such a byte.
bool all_stand(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighs = 0x80U * kOnes;
  const auto has = [word](unsigned char c) {
    const std::uint64_t differing = word ^ (kOnes * c);
    return (differing - kOnes) & ~differing;
  };
  const std::uint64_t below_space = (word - kOnes * 0x20U) & ~word;
  return ((word | below_space | has('"') | has('\\') | has(0x7F)) & kHighs) == 0;
}

// Where the run of characters that need no look ends; nearly every text is one such run.
std::size_t end_of_plain(std::string_view text, std::size_t i) {
  while (i + kWord <= text.size() && all_stand(word_at(text, i))) i += kWord;
  while (i < text.size() && stands_for_itself(text[i])) ++i;
  return i;
}

// Words are copied as they are looked at, up to one that needs a closer look; returns how far that
// is. The last one takes along what was looked at before.
std::size_t put_plain_words(TextCursor& out, std::string_view text) {
  if (text.size() < kWord) return 0;
  std::size_t i = 0;
  for (; i < text.size(); i += kWord) {
    const std::size_t again = i + kWord > text.size() ? i + kWord - text.size() : 0;
    const std::uint64_t word = word_at(text, i - again);
    if (!all_stand(word)) break;
    out.put_over(word, again);
  }
  return std::min(i, text.size());
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

TextCursor put_json_string(TextCursor out, std::string_view text) {
  out.put('"');
  for (std::size_t i = put_plain_words(out, text); i < text.size();) {
    if (stands_for_itself(text[i])) {
      out.put(text[i++]);
    } else {
      i = put_looked_at(out, text, i);
    }
  }
  out.put('"');
  return out;
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
