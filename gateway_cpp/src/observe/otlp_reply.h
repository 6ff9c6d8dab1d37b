// What a collector's answer to a batch means, as OTLP over HTTP says. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "observe/http_post.h"

namespace penstock::observe {

enum class PostVerdict : std::uint8_t {
  kTaken,
  kAgain,    // the same may be taken later
  kRefused,  // it never will
};

PostVerdict verdict_of(const PostAnswer& answer);

// Of a batch that was taken: spans that were thrown away nevertheless.
std::uint64_t rejected_spans(const PostAnswer& answer);

// How long to wait before the next of some tries: as the collector asks, else ever longer, a fifth
// more or less by `random`.
std::chrono::milliseconds wait_after(unsigned tries, const PostAnswer& answer,
                                     std::uint32_t random);

}  // namespace penstock::observe
