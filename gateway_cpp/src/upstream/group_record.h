// Token groups in few bytes, for as long as a stream runs: of a group that says nothing but tokens
// of the first choice, one byte beside their ids.
//
// A group of few ids, which says nothing else, is their size and they, as on the wire. Of any other
// the first byte tells what it says, and that follows: ids and texts with their size before them.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "upstream/token_groups.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

// The first byte of a group that is not of few ids: this, and a bit for each part that it has.
inline constexpr uint64_t kOther = kFewIds + 1;
inline constexpr uint64_t kHasIds = 1;
inline constexpr uint64_t kHasChoice = 2;
inline constexpr uint64_t kHasFinish = 4;
inline constexpr uint64_t kHasStop = 8;

// Any groups; `to` has room for as many bytes as they have. Returns where the next would go.
char* record_any(const TokenGroupsView& groups, char* to);

// As memcpy, of what is short, in two that may overlap.
inline void copy_few(const char* from, size_t size, char* to) {
  const auto in_two = [&](size_t part) {
    std::memcpy(to, from, part);
    std::memcpy(to + size - part, from + size - part, part);
  };
  constexpr size_t kPart = 4;
  if (size >= kPart) {
    size <= 2 * kPart ? in_two(kPart) : void(std::memcpy(to, from, size));
  } else if (size > 1) {
    in_two(kPart / 2);
  } else if (size == 1) {
    *to = *from;
  }
}

// As record_any(); nearly all chunks have one group, whose ids are all that it says.
inline char* record_groups(const TokenGroupsView& groups, char* to) {
  if (!groups.is_few) return record_any(groups, to);
  constexpr size_t kBefore = kFewFraming - 1;  // what is before the ids' size
  const size_t size = groups.bytes.size() - kBefore;
  copy_few(groups.bytes.data() + kBefore, size, to);
  return to + size;
}

// Hands each group of a record to take(const TokenGroup&), in their order.
template <class Take>
void each_recorded(std::string_view record, const Take& take) {
  read_fields(record, [&take](uint64_t first, WireFields& fields) {
    TokenGroup group;
    const auto lacks = [first](uint64_t part) { return (first & part) == 0; };
    const bool good = first <= kFewIds
                          ? fields.take(first, group.ids)
                          : (lacks(kHasIds) || fields.bytes(group.ids)) &&
                                (lacks(kHasChoice) || fields.number(group.choice)) &&
                                (lacks(kHasFinish) || fields.bytes(group.finish_reason)) &&
                                (lacks(kHasStop) || fields.bytes(group.stop_reason));
    if (good) take(group);
    return good;
  });
}

}  // namespace penstock::upstream
