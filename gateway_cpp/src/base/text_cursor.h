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

// Copies a text, a short one without a call: most are names and ids.
[[gnu::always_inline]] inline void copy_text(char* to, std::string_view text) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const char* const from = text.data();
  const std::size_t size = text.size();
  if (size == 0) return;  // it may be nowhere
  if (__builtin_constant_p(size) || size < kWord || size > 4 * kWord) {
    std::memcpy(to, from, size);
    return;
  }
  // Words of the beginning and of the end, which may lie over each other.
  const auto word = [to, from](std::size_t at) { std::memcpy(to + at, from + at, kWord); };
  word(0);
  if (size > 2 * kWord) {
    word(kWord);
    word(size - 2 * kWord);
  }
  word(size - kWord);
}

class TextCursor {
 public:
  static constexpr std::size_t kNumberRoom = 20;  // what a number takes at most

  // Whoever makes it has made room at `to` for all that is put.
  explicit TextCursor(char* to) : at_(to) {}

  char* at() const { return at_; }

  void put(char c) { *at_++ = c; }
  void put(std::string_view text) {
    copy_text(at_, text);
    at_ += text.size();
  }
  // Eight characters, over the last `again` that stand there.
  void put_over(std::uint64_t word, std::size_t again) {
    std::memcpy(at_ - again, &word, sizeof word);
    at_ += sizeof word - again;
  }
  template <std::integral Number>
  void put_number(Number number) {
    at_ = std::to_chars(at_, at_ + kNumberRoom, number).ptr;
  }
  // The last digits of `number`, zeros before it.
  template <std::size_t Digits>
  void put_padded(std::uint64_t number) {
    for (std::size_t i = Digits; i > 0; number /= 10) {
      at_[--i] = static_cast<char>('0' + number % 10);
    }
    at_ += Digits;
  }

 private:
  char* at_;
};

}  // namespace penstock::base
