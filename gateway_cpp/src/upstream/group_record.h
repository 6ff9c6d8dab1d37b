// Token groups in few bytes, for as long as a stream runs: of a group that says nothing but tokens
// of the first choice, one byte beside their ids.
//
// Each is a varint, its ids, and where the varint is odd what else it says: the varint's half is
// the bytes of ids; then come the choice and both texts, each with its size before it.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "upstream/token_groups.h"
#include "upstream/wire_fields.h"

namespace penstock::upstream {

// Any groups; `to` has room for as many bytes as they have. Returns where the next would go.
char* record_any(const TokenGroupsView& groups, char* to);

// As memcpy, of what is short, in two that may overlap.
inline void copy_few(std::string_view from, char* to) {
  const auto in_two = [&](size_t part) {
    std::memcpy(to, from.data(), part);
    std::memcpy(to + from.size() - part, from.data() + from.size() - part, part);
  };
  if (from.size() > 2 * sizeof(uint32_t)) {
    std::memcpy(to, from.data(), from.size());
  } else if (from.size() >= sizeof(uint32_t)) {
    in_two(sizeof(uint32_t));
  } else if (from.size() >= sizeof(uint16_t)) {
    in_two(sizeof(uint16_t));
  } else if (!from.empty()) {
    *to = from.front();
  }
}

// As record_any(); nearly all chunks have one group, whose ids are all that it says.
inline char* record_groups(const TokenGroupsView& groups, char* to) {
  if (!groups.is_few) return record_any(groups, to);
  const std::string_view ids{groups.bytes.data() + kFewFraming, groups.bytes.size() - kFewFraming};
  *to++ = static_cast<char>(ids.size() << 1U);
  copy_few(ids, to);
  return to + ids.size();
}

// Hands each group of a record to take(const TokenGroup&), in their order.
template <class Take>
void each_recorded(std::string_view record, const Take& take) {
  read_fields(record, [&take](uint64_t header, WireFields& fields) {
    TokenGroup group;
    bool good = fields.take(header >> 1U, group.ids);
    if ((header & 1U) != 0) {
      good = good && fields.number(group.choice) && fields.bytes(group.finish_reason) &&
             fields.bytes(group.stop_reason);
    }
    if (good) take(group);
    return good;
  });
}

}  // namespace penstock::upstream
