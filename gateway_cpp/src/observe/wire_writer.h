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

// Made where the message is put together, and inlined: where it stands is a register then, since
// nothing that is called is told where the writer itself is.
class WireWriter {
 public:
  // Writes into `room`, which grows as need be and is its owner's, for the next message.
  explicit WireWriter(std::string& room)
      : room_(room), begin_(room.data()), at_(begin_ + room.size()), end_(at_) {}

  // What has been written; holds until more is.
  std::string_view bytes() const { return {at_, size()}; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - at_); }

  // Numbers that are 0 and texts that are empty are left out, as protobuf does. A field's tag is a
  // byte or two that the compiler knows.
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
    if (told.empty()) return;
    const bool is_good = told.size() <= most && base::is_ascii(told);
    is_good ? text(field, told) : text(field, base::valid_text(base::cut_text(told, most)));
  }
  // One of a repeated field: it stands, be it empty.
  template <class Write>
  [[gnu::always_inline]] void message(std::uint32_t field, const Write& write) {
    const std::size_t before = size();
    write();
    make_room(2 * kVarint);
    put_tag(field, size() - before);
  }
  [[gnu::always_inline]] void numbers(std::uint32_t field, std::span<const std::uint32_t> numbers) {
    make_room((numbers.size() + 2) * kVarint);
    const std::size_t before = size();
    for (std::size_t i = numbers.size(); i > 0; --i) put(numbers[i - 1]);
    put_tag(field, size() - before);
  }

 private:
  static constexpr std::size_t kVarint = 10;  // bytes of the longest
  static constexpr std::size_t kNumber = SIZE_MAX;

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
      at_ = put_long(at_, number);
    }
  }

  [[gnu::noinline]] static char* put_long(char* end, std::uint64_t number) {
    char* const at = end - (static_cast<std::size_t>(std::bit_width(number)) + 6) / 7;
    char* to = at;
    for (; number >= 0x80U; number >>= 7U) *to++ = static_cast<char>(number | 0x80U);
    *to = static_cast<char>(number);
    return at;
  }

  [[gnu::always_inline]] void make_room(std::size_t bytes) {
    if (static_cast<std::size_t>(at_ - begin_) >= bytes) return;
    const std::size_t written = size();
    grow(room_, written, bytes);
    begin_ = room_.data();
    end_ = begin_ + room_.size();
    at_ = end_ - written;
  }

  // What is written stands at the end afterwards, too.
  [[gnu::noinline]] static void grow(std::string& room, std::size_t written, std::size_t bytes) {
    std::string larger(2 * room.size() + bytes, '\0');
    const std::string_view kept = std::string_view(room).substr(room.size() - written);
    kept.copy(larger.data() + larger.size() - written, written);
    room.swap(larger);
  }

  std::string& room_;
  char* begin_;
  char* at_;
  char* end_;
};

}  // namespace penstock::observe
