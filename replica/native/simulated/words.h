// The simulated engine's language: readable sentences, one word a token, that follow from a seed.
// Pure functions. Words hold nothing that JSON would escape.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace penstock::replica::simulated {

struct Word {
  uint32_t token_id;
  std::string_view text;  // with the space before it, apart from the first word of an answer
};

// The word at `index` of the answer that follows from `seed`.
Word word_at(uint64_t seed, uint64_t index);

// The first `count` words.
std::string text_of(uint64_t seed, uint64_t count);

// How many words come before the one in which the first of `stops` begins; none if none begins
// within `count` words.
std::optional<uint64_t> words_before_stop(uint64_t seed, uint64_t count,
                                          std::span<const std::string> stops);

// Folds `text` into `hash`; the order of calls matters.
uint64_t mix(uint64_t hash, std::string_view text);

}  // namespace penstock::replica::simulated
