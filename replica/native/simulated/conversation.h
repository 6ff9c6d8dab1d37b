// The prompt of a request as the simulated engine reads it, and a chat that loses its oldest turns.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "simulated/reading.h"

namespace penstock::replica::simulated {

// What the answer follows from, and what the prompt costs: a token for each word.
class Prompt {
 public:
  // `by_ids`: its words are told as ids, and the answer follows from these alone, so that a prompt
  // that is given by ids is answered alike.
  explicit Prompt(bool by_ids = false) : by_ids_(by_ids) {}

  void add(std::string_view text);
  void add_token(uint64_t id);
  uint64_t hash() const { return hash_; }
  uint32_t tokens() const { return tokens_; }
  bool by_ids() const { return by_ids_; }
  std::vector<uint32_t> take_ids() { return std::exchange(ids_, {}); }

 private:
  bool by_ids_;
  std::vector<uint32_t> ids_;
  uint64_t hash_ = 0;
  uint32_t tokens_ = 0;
};

// All messages of a chat's body. Throws `BadRequest`.
Prompt read_messages(dom::object body, bool by_ids = false);
// What a completion's body asks to go on with. Throws `BadRequest`.
Prompt read_prompt(dom::object body, bool by_ids = false);

struct Shortened {
  Prompt prompt;
  uint32_t messages = 0;  // that went
};

// A chat that `read_messages` has read, within so many tokens; none: what has to stay is too much.
std::optional<Shortened> shortened(dom::object body, uint64_t budget, bool by_ids = false);

}  // namespace penstock::replica::simulated
