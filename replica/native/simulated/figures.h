// What the simulated engine counts. Values only.
#pragma once

#include <cstdint>

#include "penstock/v1/inference.pb.h"
#include "simulated/settings.h"

namespace penstock::replica::simulated {

struct Figures {
  uint32_t running = 0;
  uint32_t waiting = 0;
  uint64_t waiting_tokens = 0;  // of their prompts
  uint64_t kv_blocks_used = 0;  // by calls
  uint64_t leased_blocks = 0;   // for KV that is to come
  uint64_t tokens = 0;          // since the start
  uint64_t prompt_tokens = 0;   // since the start, computed
  uint64_t prefix_hits = 0;     // since the start: of prompts, found
  uint64_t steps = 0;           // since the start
  uint32_t step_us = 0;         // of the last one
};

inline void tell(const Figures& figures, const Settings& settings, v1::Load* load) {
  load->set_running(figures.running);
  load->set_waiting(figures.waiting);
  load->set_waiting_tokens(figures.waiting_tokens);
  load->set_max_running(settings.max_running);
  load->set_tokens(figures.tokens);
  load->set_prompt_tokens(figures.prompt_tokens);
  load->set_prefix_queries(figures.prompt_tokens + figures.prefix_hits);
  load->set_prefix_hits(figures.prefix_hits);
  load->set_steps(figures.steps);
  load->set_step_us(figures.step_us);
  load->set_kv_blocks(settings.kv_blocks);
  if (settings.kv_blocks > 0) {
    const uint64_t used = figures.kv_blocks_used + figures.leased_blocks;
    load->set_kv_blocks_used(used);
    load->set_kv_usage(static_cast<float>(used) / static_cast<float>(settings.kv_blocks));
  }
}

}  // namespace penstock::replica::simulated
