// What a replica may say of a call, looked at where it enters, so that whoever reads it further on
// can put it on a client's wire and reckon with it. A fault's text names no more of what was said
// than a number.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/v1/inference.pb.h"
#include "upstream/call_event.h"

namespace penstock::upstream {

// Tokens of one call: more than any model takes or any answer has.
inline constexpr uint32_t kMostTokens = 1'000'000'000;

// Empty: all is well.
std::string fault_of(const Head& head);
std::string fault_of(const Finished& outcome);

// Whether a chunk can be one of a call that has cost so much before.
inline bool is_plausible(const ChunkView& chunk, const Usage& seen) {
  return chunk.events <= chunk.body.size() + 1 &&
         chunk.tokens <= kMostTokens - seen.completion_tokens;
}

// The nearest that can be, of what only its payer is told.
Usage bounded(Usage usage);
// Likewise, of texts as long as a person may want to read.
void bound(v1::ErrorDetail& error);

}  // namespace penstock::upstream
