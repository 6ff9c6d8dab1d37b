// What the client of a broken answer has of it, for the replica that goes on with it.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::upstream {

// As v1::Resume, which says what it means; seen where its parts lie.
struct Resume {
  std::string_view groups{};  // a record of them: group_record.h
  uint32_t events = 0;
  uint64_t created = 0;
  uint32_t cached_tokens = 0;
};

}  // namespace penstock::upstream
