// Writes text into room that was made for it, and so looks at none of its pieces twice: for lines
// and heads of some dozen pieces, which strings that grow by each cost three times as much.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock::base {

class TextCursor {
 public:
  static constexpr std::size_t kNumberRoom = 20;  // what a number takes at most

  // Whoever makes it has made room at `to` for all that is put.
  explicit TextCursor(char* to) : at_(to) {}

  char* at() const { return at_; }

  void put(char c) { *at_++ = c; }
  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  template <std::integral Number>
  void put_number(Number number) {
    at_ = std::to_chars(at_, at_ + kNumberRoom, number).ptr;
  }
  // The last `digits` of `number`, zeros before it.
  void put_padded(std::uint64_t number, std::size_t digits) {
    for (std::size_t i = digits; i > 0; number /= 10) {
      at_[--i] = static_cast<char>('0' + number % 10);
    }
    at_ += digits;
  }

 private:
  char* at_;
};

}  // namespace penstock::base
