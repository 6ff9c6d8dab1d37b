// One call inside the simulated engine. Guarded by the engine's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "simulated/answer.h"
#include "simulated/prefix_cache.h"
#include "simulated/request.h"
#include "simulated/settings.h"
#include "simulated/timing.h"

namespace penstock::replica::simulated {

// Who waits: the lowest priority first, and of one priority who came first.
using Place = std::pair<int32_t, uint64_t>;

// One call from its acceptance to its last token. Guarded by the engine's mutex.
struct Stream {
  // `created`: seconds since 1970.
  Stream(CallPtr the_call, const Ask& ask, Time now, int64_t created)
      : call(std::move(the_call)),
        answer(call->request, ask, created),
        unary(!ask.stream),
        prompt_tokens(ask.prompt_tokens),
        resumed_cached(call->request.has_resume()
                           ? std::optional(call->request.resume().cached_tokens())
                           : std::nullopt),
        blocks((ask.prompt_tokens + answer.tokens() + kBlockTokens - 1) / kBlockTokens),
        adapter(call->request.adapter()),
        priority(call->request.priority()),
        behaviour(ask.behaviour),
        period(period_of(ask.behaviour.tokens_per_second)),
        accepted(now),
        sent(answer.delivered_tokens()) {}

  // Of the prompt, as the answer tells it.
  uint32_t cached_tokens() const { return resumed_cached.value_or(found - moved); }
  // All of it is made: only what ends it may be lacking.
  bool is_complete() const { return sent > 0 && sent == answer.tokens(); }
  // To be computed before the first new token, unless cached.
  uint32_t prefill_tokens() const {
    return prompt_tokens + static_cast<uint32_t>(answer.delivered_tokens());
  }

  v1::Usage usage() const {
    v1::Usage usage;
    usage.set_prompt_tokens(prompt_tokens);
    usage.set_completion_tokens(static_cast<uint32_t>(sent));
    usage.set_cached_tokens(cached_tokens());
    return usage;
  }

  const CallPtr call;
  const Answer answer;
  const bool unary;
  const uint32_t prompt_tokens;
  const std::optional<uint32_t> resumed_cached;  // that the answer told of where it began elsewhere
  const uint64_t blocks;                         // of the KV cache, for all of it
  const std::string adapter;
  const int32_t priority;
  const Behaviour behaviour;
  const Time period;
  const Time accepted;
  Place place;
  std::vector<uint64_t> hashes;  // of the prompt's blocks; empty: no prefixes are cached
  uint32_t found = 0;            // of the prompt, when it got its slot
  uint32_t moved = 0;            // of these, moved here for it
  Time admitted{0};
  Time first_token{0};
  int64_t next_step = 0;  // of the grid: when the next token is due
  uint64_t sent;          // tokens, those that were delivered elsewhere included
  bool waits = false;     // for a slot
  bool has_slot = false;
  bool begun = false;
  bool held = false;  // its queue is full
  bool over = false;  // ended or cancelled
};

using StreamPtr = std::shared_ptr<Stream>;

}  // namespace penstock::replica::simulated
