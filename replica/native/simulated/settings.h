// How a simulated engine behaves. Values only; checked by simulated/engine.py.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::replica::simulated {

// What a request may override, where the deployment allows it.
struct Behaviour {
  uint32_t ttft_ms = 0;            // milliseconds from getting a slot to the first token
  double tokens_per_second = 0;    // of each stream; 0: as fast as it goes
  uint32_t answer_tokens = 64;     // when the request names no limit
  uint64_t die_after_tokens = 0;   // of one call: the engine dies; 0: never
  uint64_t hang_after_tokens = 0;  // of one call: the engine stops for all calls; 0: never
};

struct Settings {
  Behaviour behaviour;
  uint32_t max_running = 4096;  // streams at once; others wait
  uint32_t kv_blocks = 0;       // of 16 tokens, taken for the whole answer; 0: not simulated
  double prefill_tokens_per_second = 0;  // of each prompt; 0: as fast as it goes
  bool microserving = false;             // prompts are read by ids, and their prefixes cached
  std::string no_resume;                 // why it goes on with no answer of others; empty: it does
  double refuse_share = 0;               // share of requests refused with queue_full: 0..1
  bool per_request = false;          // a request may override `behaviour` by its field "simulate"
  uint32_t max_model_len = 1 << 20;  // tokens of prompt and answer together
  std::string backend_version;
  std::string model;
  std::string model_version;
};

}  // namespace penstock::replica::simulated
