// The beginning of a prompt as a chain of hashes, for sending like prompts to like replicas: equal
// hashes mean equal beginnings, whatever white space stands between. Nothing is decided by them but
// where a request goes: two prompts that are taken for alike cost a cache miss.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "openai/endpoints.h"

namespace penstock::openai {

// Element i stands for the blocks 0 to i of the value of the endpoint's prompt field: blocks of 256
// bytes without the white space between JSON's tokens, at most the first 128; a block that is not
// full has none. `seed`: what else must be alike, such as the adapter.
std::vector<std::uint64_t> prefix_blocks(std::string_view body, const Endpoint& endpoint,
                                         std::uint64_t seed);

}  // namespace penstock::openai
