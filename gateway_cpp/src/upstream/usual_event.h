// An event as nearly all are, read in one go: a call's id and a chunk, each field where protobuf
// writes it, with small numbers, and one group of few tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/call_event.h"
#include "upstream/token_groups.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

// Where reading stands: in registers, since all of it is inlined.
class UsualFields {
 public:
  explicit UsualFields(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  size_t left() const { return static_cast<size_t>(end_ - at_); }
  std::string_view rest() const { return {at_, left()}; }

  // The field with this tag, which is one byte, comes next.
  [[gnu::always_inline]] bool starts_with(uint64_t tag) const {
    return at_ != end_ && *at_ == static_cast<char>(tag);
  }
  [[gnu::always_inline]] bool is_next(uint64_t tag) {
    if (!starts_with(tag)) return false;
    ++at_;
    return true;
  }
  // So many that are there.
  void skip(size_t size) { at_ += size; }
  template <class Number>
  [[gnu::always_inline]] bool number(Number& value) {
    if (at_ == end_) return false;
    uint32_t read = static_cast<unsigned char>(*at_++);
    if (read > 0x7fU && !go_on(read)) return false;
    value = read;
    return true;
  }
  [[gnu::always_inline]] bool take(size_t size, std::string_view& bytes) {
    if (size > left()) return false;
    bytes = {at_, size};
    at_ += size;
    return true;
  }

 private:
  // A number of more than one byte, of which the first was read.
  [[gnu::always_inline]] bool go_on(uint32_t& read) {
    constexpr unsigned kMostBits = 28;
    read &= 0x7fU;
    for (unsigned bits = 7; at_ != end_ && bits < kMostBits; bits += 7) {
      const uint32_t byte = static_cast<unsigned char>(*at_++);
      read |= (byte & 0x7fU) << bits;
      if (byte <= 0x7fU) return byte != 0;  // not longer than need be
    }
    return false;
  }

  const char* at_;
  const char* end_;
};

// False: it is another, and `event` means nothing. `event` is empty before.
inline bool read_usual(std::string_view bytes, CallEvent& event) {
  UsualFields fields(bytes);
  ChunkView& chunk = event.chunk;
  size_t size = 0;
  if (!fields.is_next(number_field(v1::CallEvent::kCallIdFieldNumber)) ||
      !fields.number(event.call_id) ||
      !fields.is_next(bytes_field(v1::CallEvent::kChunkFieldNumber)) || !fields.number(size) ||
      size != fields.left()) {
    return false;
  }
  if (!fields.is_next(bytes_field(v1::Chunk::kBodyFieldNumber)) || !fields.number(size) ||
      !fields.take(size, chunk.body)) {
    return false;
  }
  if (fields.is_next(number_field(v1::Chunk::kEventsFieldNumber)) && !fields.number(chunk.events)) {
    return false;
  }
  if (fields.starts_with(bytes_field(v1::Chunk::kGroupsFieldNumber))) {
    const size_t few = size_of_few_ids(fields.rest());
    if (few == 0) return false;
    chunk.groups = {.bytes = {fields.rest().data(), few}, .is_few = true};
    fields.skip(few);
  }
  if (fields.is_next(number_field(v1::Chunk::kTokensFieldNumber)) && !fields.number(chunk.tokens)) {
    return false;
  }
  return fields.left() == 0;
}

}  // namespace penstock::upstream
