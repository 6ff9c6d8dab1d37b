// One replica's engine in a simulation: a prefix cache, prefills one after the other, and decoding
// that slows down as more calls run. Seconds, tokens and blocks; no real time.
#pragma once

#include <cstdint>
#include <span>

#include "routing/prefix_table.h"
#include "routing/traits.h"

namespace penstock::simulation {

constexpr std::uint32_t kPlaces = 16;  // calls that an engine runs at once

class Engine {
 public:
  Engine();

  struct Timing {
    double first_token = 0;  // when, in seconds
    double end = 0;
    std::size_t cached = 0;  // blocks of the prompt
  };
  Timing begin(std::span<const std::uint64_t> blocks, std::uint32_t completion_tokens, double now);
  void end(std::uint32_t completion_tokens);
  // All calls and the cache are gone. What began before is told by its epoch.
  void die();

  std::uint32_t epoch() const { return epoch_; }
  std::uint64_t tokens() const { return tokens_; }  // computed and generated, over all epochs
  routing::LoadReport load() const;

 private:
  routing::PrefixTable cache_;
  double prefill_free_ = 0;
  std::uint32_t running_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace penstock::simulation
