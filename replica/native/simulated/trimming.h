// Which messages of a conversation stay where there is room for some: penstock.replica.trimming for
// an engine whose tokens add up. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::replica::simulated {

// What trimming has to know of a message.
struct Message {
  std::string_view role;
  bool pinned = false;
  std::vector<std::string_view> calls;  // ids of the calls that it makes
  std::string_view result_of;           // id of the call whose result it is; empty: of none
  uint32_t tokens = 0;
};

// For each message whether it stays so that all have at most `budget` tokens: the oldest turns go
// first and whole, none that need not. System and developer messages, pinned ones and the newest
// turn stay, a call of tools and its results together. None: what has to stay is too much.
std::optional<std::vector<bool>> fitted(std::span<const Message> messages, uint64_t budget);

}  // namespace penstock::replica::simulated
