// The fields of a protobuf message, read one after the other where they lie.
// https://protobuf.dev/programming-guides/encoding/
//
// Every method is false where the bytes are not what it reads, or written as protobuf would not
// write them: those are protobuf's to judge, and nothing behind them is read here.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/utf8_text.h"

namespace penstock::upstream {

// A field's number and how it is written: a number, or so many bytes.
constexpr uint64_t number_field(int field) { return static_cast<uint64_t>(field) << 3U; }
constexpr uint64_t bytes_field(int field) { return static_cast<uint64_t>(field) << 3U | 2U; }

class WireFields {
 public:
  explicit WireFields(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool empty() const { return at_ == end_; }
  // What was not read yet.
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  // Too large a number is cut, as protobuf cuts it.
  template <std::unsigned_integral Number>
  bool number(Number& value) {
    if (at_ == end_) return false;
    const auto first = static_cast<unsigned char>(*at_);
    if (first > 0x7fU) return long_number(value);
    value = static_cast<Number>(first);  // as nearly all are
    ++at_;
    return true;
  }

  bool bytes(std::string_view& value) {
    const char* const before = at_;
    uint64_t size = 0;
    if (number(size) && take(size, value)) return true;
    at_ = before;
    return false;
  }

  // The next `size` bytes, whatever they are.
  bool take(uint64_t size, std::string_view& value) {
    if (size > static_cast<size_t>(end_ - at_)) return false;
    value = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }

  // Text has to be UTF-8, which all ASCII is.
  bool text(std::string_view& value) { return bytes(value) && base::is_ascii(value); }

  template <class String>
  bool text_into(String& value) {
    std::string_view read;
    if (!text(read)) return false;
    value.assign(read);
    return true;
  }

  // What nobody wants to know.
  bool skip_number() {
    uint64_t unread = 0;
    return number(unread);
  }
  bool skip_text() {
    std::string_view unread;
    return text(unread);
  }

 private:
  static constexpr unsigned kMostBits = 63;  // of the nine bytes that are read

  // Apart, so that the usual one is a few instructions wherever it is asked for.
  template <std::unsigned_integral Number>
  bool long_number(Number& value) {
    uint64_t read = 0;
    const char* at = at_;
    for (unsigned bits = 0; at != end_ && bits < kMostBits; bits += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      read |= static_cast<uint64_t>(byte & 0x7fU) << bits;
      if (byte > 0x7fU) continue;
      if (byte == 0) return false;  // written longer than need be
      value = static_cast<Number>(read);
      at_ = at;
      return true;
    }
    return false;
  }

  const char* at_;
  const char* end_;
};

// Reads each field with take(tag, fields); false as soon as that is, or where there is no tag.
template <class Take>
bool read_fields(std::string_view bytes, const Take& take) {
  WireFields fields(bytes);
  while (!fields.empty()) {
    uint64_t tag = 0;
    if (!fields.number(tag) || !take(tag, fields)) return false;
  }
  return true;
}

}  // namespace penstock::upstream
