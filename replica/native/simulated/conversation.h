// The prompt of a request as the simulated engine reads it, and a chat that loses its oldest turns.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "simulated/reading.h"

namespace penstock::replica::simulated {

// What the answer follows from, and what the prompt costs: a token for each word.
class Prompt {
 public:
  void add(std::string_view text);
  void add_token(uint64_t id);
  uint64_t hash() const { return hash_; }
  uint32_t tokens() const { return tokens_; }

 private:
  uint64_t hash_ = 0;
  uint32_t tokens_ = 0;
};

// All messages of a chat's body. Throws `BadRequest`.
Prompt read_messages(dom::object body);
// What a completion's body asks to go on with. Throws `BadRequest`.
Prompt read_prompt(dom::object body);

struct Shortened {
  Prompt prompt;
  uint32_t messages = 0;  // that went
};

// A chat that `read_messages` has read, within so many tokens; none: what has to stay is too much.
std::optional<Shortened> shortened(dom::object body, uint64_t budget);

}  // namespace penstock::replica::simulated
