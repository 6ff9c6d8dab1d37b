// Writes a protobuf message by hand, from its end to its beginning: so the length of a part is
// known where it has to stand, and nothing is measured before it is written. Who writes its fields
// in the falling order of their numbers has them as protobuf would.
// https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/text_cursor.h"
#include "base/utf8_text.h"

namespace penstock::observe {

class WireWriter {
 public:
  // Writes into `room`, which grows as need be and is its owner's, for the next message.
  explicit WireWriter(std::string& room) : room_(room), at_(room.data() + room.size()), end_(at_) {}

  // What has been written; holds until more is.
  std::string_view bytes() const { return {at_, size()}; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - at_); }

  // Numbers that are 0 and texts that are empty are left out, as protobuf does. Inlined, a field's
  // tag is a byte or two that the compiler knows.
  [[gnu::always_inline]] void number(std::uint32_t field, std::uint64_t number) {
    if (number == 0) return;
    make_room(2 * kVarint);
    put(number);
    put_tag(field, kNumber);
  }
  [[gnu::always_inline]] void text(std::uint32_t field, std::string_view text) {
    if (text.empty()) return;
    make_room(text.size() + 2 * kVarint);
    at_ -= text.size();
    base::copy_text(at_, text);
    put_tag(field, text.size());
  }
  // Of others, of which it takes so many bytes and nothing but UTF-8.
  [[gnu::always_inline]] void foreign(std::uint32_t field, std::string_view told,
                                      std::size_t most) {
    if (!told.empty()) put_foreign(field, told, most);
  }
  // One of a repeated field: it stands, be it empty.
  template <class Write>
  void message(std::uint32_t field, const Write& write) {
    const std::size_t before = size();
    write();
    make_room(2 * kVarint);
    put_tag(field, size() - before);
  }
  void numbers(std::uint32_t field, std::span<const std::uint32_t> numbers) {
    make_room((numbers.size() + 2) * kVarint);
    const std::size_t before = size();
    for (std::size_t i = numbers.size(); i > 0; --i) put(numbers[i - 1]);
    put_tag(field, size() - before);
  }

 private:
  static constexpr std::size_t kVarint = 10;  // bytes of the longest
  static constexpr std::size_t kNumber = SIZE_MAX;

  [[gnu::noinline]] void put_foreign(std::uint32_t field, std::string_view told, std::size_t most) {
    told = base::cut_text(told, most);
    base::is_ascii(told) ? text(field, told) : text(field, base::valid_text(told));
  }

  // `bytes`: how many of them come behind it; kNumber: it is no such field.
  [[gnu::always_inline]] void put_tag(std::uint32_t field, std::size_t bytes) {
    if (bytes != kNumber) put(bytes);
    put(static_cast<std::uint64_t>(field) << 3U | (bytes == kNumber ? 0U : 2U));
  }

  [[gnu::always_inline]] void put(std::uint64_t number) {
    if (number < 0x80U) {  // as most are
      *--at_ = static_cast<char>(number);
    } else if (number < 0x4000U) {
      *--at_ = static_cast<char>(number >> 7U);
      *--at_ = static_cast<char>(number | 0x80U);
    } else {
      put_long(number);
    }
  }

  [[gnu::noinline]] void put_long(std::uint64_t number) {
    at_ -= (static_cast<std::size_t>(std::bit_width(number)) + 6) / 7;
    char* to = at_;
    for (; number >= 0x80U; number >>= 7U) *to++ = static_cast<char>(number | 0x80U);
    *to = static_cast<char>(number);
  }

  void make_room(std::size_t bytes) {
    if (static_cast<std::size_t>(at_ - room_.data()) < bytes) grow(bytes);
  }

  [[gnu::noinline]] void grow(std::size_t bytes) {
    const std::size_t written = size();
    std::string larger(2 * room_.size() + bytes, '\0');
    char* const end = larger.data() + larger.size();
    if (written > 0) std::memcpy(end - written, at_, written);
    room_.swap(larger);
    end_ = end;
    at_ = end - written;
  }

  std::string& room_;
  char* at_;
  char* end_;
};

}  // namespace penstock::observe
