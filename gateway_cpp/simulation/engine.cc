#include "engine.h"

#include <algorithm>

#include "traffic.h"

namespace penstock::simulation {
namespace {

constexpr double kPrefillTokensASecond = 20'000;
constexpr double kTokenSeconds = 0.015;  // of a call that runs alone
constexpr double kCrowding = 0.5;        // how much longer a token takes when all places are taken
constexpr std::size_t kCacheBlocks = 2000;  // in each of two generations

}  // namespace

Engine::Engine() { cache_.set_capacity(kCacheBlocks); }

Engine::Timing Engine::begin(std::span<const std::uint64_t> blocks, std::uint32_t completion_tokens,
                             double now) {
  Timing timing;
  while (timing.cached < blocks.size() && cache_.find(blocks[timing.cached]) != 0) ++timing.cached;
  for (const std::uint64_t block : blocks.subspan(timing.cached)) cache_.put(block, 1);
  // The last block is always computed: its last token's answer is what is asked for.
  timing.cached = std::min(timing.cached, blocks.size() - 1);
  const auto computed = static_cast<double>((blocks.size() - timing.cached) * kBlockTokens);
  ++running_;
  timing.first_token = std::max(now, prefill_free_) + computed / kPrefillTokensASecond;
  prefill_free_ = timing.first_token;
  const double token = kTokenSeconds * (1 + kCrowding * running_ / kPlaces);
  timing.end = timing.first_token + completion_tokens * token;
  tokens_ += static_cast<std::uint64_t>(computed);
  return timing;
}

void Engine::end(std::uint32_t completion_tokens) {
  --running_;
  tokens_ += completion_tokens;
}

void Engine::die() {
  cache_ = {};
  cache_.set_capacity(kCacheBlocks);
  prefill_free_ = 0;
  running_ = 0;
  ++epoch_;
}

routing::LoadReport Engine::load() const {
  return {.running = running_,
          .max_running = kPlaces,
          .calls = running_,
          .gateways = 1,
          .tokens = tokens_};
}

}  // namespace penstock::simulation
