// The tokens of an answer, as a replica tells them with its chunks: v1::TokenGroup, read where it
// lies. With all groups of an answer another replica can go on with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/v1/inference.pb.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

// As v1::TokenGroup.
struct TokenGroup {
  uint32_t choice = 0;
  std::string_view ids{};  // varints, one behind the other
  std::string_view finish_reason{};
  std::string_view stop_reason{};
};

// Whether they are varints of numbers of 32 bits. The last one ends with them.
inline bool are_token_ids(std::string_view ids) {
  constexpr unsigned kLongest = 5;
  const auto goes_on = [](char byte) { return static_cast<unsigned char>(byte) > 0x7fU; };
  if (ids.empty() || goes_on(ids.back())) return ids.empty();
  if (ids.size() <= kLongest) return true;
  unsigned length = 0;
  for (const char byte : ids) {
    length = goes_on(byte) ? length + 1 : 0;
    if (length == kLongest) return false;
  }
  return true;
}

// False: `bytes` are not what protobuf would write of a v1::TokenGroup. Texts may be any bytes.
inline bool read_group(std::string_view bytes, TokenGroup& group) {
  return read_fields(bytes, [&group](uint64_t tag, WireFields& fields) {
    switch (tag) {
      case number_field(v1::TokenGroup::kChoiceFieldNumber):
        return fields.number(group.choice);
      case bytes_field(v1::TokenGroup::kTokenIdsFieldNumber):
        return group.ids.empty() && fields.bytes(group.ids) && are_token_ids(group.ids);
      case bytes_field(v1::TokenGroup::kFinishReasonFieldNumber):
        return fields.bytes(group.finish_reason);
      case bytes_field(v1::TokenGroup::kStopReasonFieldNumber):
        return fields.bytes(group.stop_reason);
      default:
        return false;
    }
  });
}

// Of a group whose ids are all that it says, and few, as nearly all are; written as a field.
inline constexpr size_t kFewFraming = 4;  // its tag, its size, the ids' tag, their size
inline constexpr size_t kFewIds = 63;     // bytes of them

// The bytes that such a field takes at the beginning of `bytes`, which has its tag; 0: it is
// another.
[[gnu::always_inline]] inline size_t size_of_few_ids(std::string_view bytes) {
  if (bytes.size() < kFewFraming || bytes[2] != bytes_field(v1::TokenGroup::kTokenIdsFieldNumber)) {
    return 0;
  }
  const size_t ids = static_cast<unsigned char>(bytes[3]);
  const size_t size = kFewFraming + ids;
  if (ids > kFewIds || static_cast<unsigned char>(bytes[1]) != ids + 2 || size > bytes.size()) {
    return 0;
  }
  return are_token_ids({bytes.data() + kFewFraming, ids}) ? size : 0;
}

// Fields `groups` of a v1::Chunk, one behind the other as they lie, each looked at once before.
struct TokenGroupsView {
  std::string_view bytes{};
  bool is_few = false;  // there is one, and size_of_few_ids() is its size; false: look

  bool empty() const { return bytes.empty(); }
  // Hands each to take(const TokenGroup&), in their order.
  template <class Take>
  void each(const Take& take) const {
    read_fields(bytes, [&take](uint64_t /*tag*/, WireFields& fields) {
      TokenGroup group;
      std::string_view inner;
      if (!fields.bytes(inner) || !read_group(inner, group)) return false;
      take(group);
      return true;
    });
  }
};

// Appends what protobuf has read, as such fields.
void append_groups(const v1::Chunk& chunk, std::string& bytes);

}  // namespace penstock::upstream
