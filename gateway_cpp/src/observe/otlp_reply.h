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

struct WaitRule {
  std::chrono::milliseconds first;
  std::uint32_t random;  // another one each time
};

// How long to wait after so many tries: as the collector asks, else twice as long each time, a
// fifth more or less by chance.
std::chrono::milliseconds wait_after(unsigned tries, const PostAnswer& answer, WaitRule rule);

}  // namespace penstock::observe
