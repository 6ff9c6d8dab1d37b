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

// Likewise; nearly all chunks have one group, whose ids are all that it says.
inline char* record_groups(const TokenGroupsView& groups, char* to) {
  constexpr size_t kFraming = 4;  // the group's tag and size, those of its ids
  constexpr size_t kMostIds = 63;
  const std::string_view bytes = groups.bytes;
  const size_t ids = bytes.size() - kFraming;
  if (ids > kMostIds || bytes[2] != bytes_field(v1::TokenGroup::kTokenIdsFieldNumber) ||
      bytes[3] != static_cast<char>(ids)) {
    return record_any(groups, to);
  }
  *to++ = static_cast<char>(ids << 1U);
  std::memcpy(to, bytes.data() + kFraming, ids);
  return to + ids;
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
