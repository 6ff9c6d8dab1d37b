// What engines of some machines take for a step, and what moves KV between them. One is fitted to
// vLLM; the other is assumed, each figure with its source.
#pragma once

#include <array>
#include <string_view>

#include "step_engine.h"

namespace penstock::simulation {

// KV goes from one engine to the other, layer by layer while later layers are computed.
struct Link {
  double bytes_a_token = 0;
  double bytes_a_second = 0;
  std::uint32_t layers = 1;
  double call = 0;  // seconds of a call to an engine: one before KV can come, one after it
};

struct Machine {
  std::string_view name;
  StepCosts costs;
  StepLimits limits;
  StepCosts double_costs;  // of one engine of double size
  StepLimits double_limits;
  Link link;
};

// Assumed: Llama-3.1-8B in bfloat16 by vLLM on A100 40 GB SXM, prompts of a few thousand tokens.
//
// weights: one stream alone has 75 tokens a second (vLLM 0.23, this model and card,
//   johnmusgrave.com/p/vllm-throughput-latency-sweep-on): 13.3 ms a step, of it 0.1 for its
//   context of 1,024 tokens. All that a step takes besides its layers is in it.
// token, decode: microsoft/vidur, data/profiling/compute/a100/meta-llama/Meta-Llama-3-8B/mlp.csv
//   at 7d47513, all layers: 69.9 us for each token of 512 to 4,096, which is 64 % of what the card
//   can do; 22.4 us for each of 1 to 64, where reading the weights is what takes time.
// pair: 4 operations for each of 32 heads of 128 in 32 layers, at half of the 312 TFLOP/s of the
//   card's data sheet.
// context: 128 KiB of KV at 77 % of the card's 1,555 GB/s, which is what the first source found.
// blocks: 0.9 of 40 GiB without 16.1 GB of weights and 1.5 GB of activations; 2 MiB each.
// budget, sequences: vLLM's own for this card.
// double_*: a half of everything (two cards, tensor parallel), and 64 sums of all hidden states:
//   45 us each and 5.83 us for each MB (vidur, data/profiling/network/a100_dgx/all_reduce.csv).
// link: 128 KiB a token; 4.43 us for each MB (there, send_recv.csv); a call as measured with a
//   prototype on vLLM, without a GPU.
inline constexpr Machine kA100{
    .name = "a100",
    .costs = {.fixed = 0,
              .weights = 13.2e-3,
              .token = 69.9e-6,
              .decode = 22.4e-6,
              .pair = 3.36e-9,
              .context = 0.109e-6},
    .limits = {.budget = 2048, .sequences = 256, .block_tokens = 16, .blocks = 10'000},
    .double_costs = {.fixed = 64 * 45e-6,
                     .weights = 6.6e-3,
                     .token = 34.95e-6 + 64 * 8192 * 5.83e-12,
                     .decode = 11.2e-6,
                     .pair = 1.68e-9,
                     .context = 0.0545e-6},
    .double_limits = {.budget = 2048, .sequences = 256, .block_tokens = 16, .blocks = 27'700},
    .link = {.bytes_a_token = 131'072, .bytes_a_second = 226e9, .layers = 32, .call = 1.2e-3}};

// Fitted: penstock-mini by vLLM 0.32 on one core of an AMD EPYC that others used, by
// replica/benchmarks/step_times.py (CPU time; half of the steps are off by less than 10.5 %);
// limits are a replica's own on CPUs. Assumed: double_*, two threads halve all but the fixed part;
// link, TCP on one machine and a call as the prototype of the above had them; 3 KiB of KV a token.
inline constexpr Machine kHere{
    .name = "here",
    .costs = {.fixed = 2.64e-3,
              .weights = 0,
              .token = 34.9e-6,
              .decode = 44.7e-6,
              .pair = 41.6e-9,
              .context = 0.498e-6},
    .limits = {.budget = 512, .sequences = 256, .block_tokens = 32, .blocks = 10'920},
    .double_costs = {.fixed = 2.64e-3,
                     .weights = 0,
                     .token = 17.45e-6,
                     .decode = 22.35e-6,
                     .pair = 20.8e-9,
                     .context = 0.249e-6},
    .double_limits = {.budget = 512, .sequences = 256, .block_tokens = 32, .blocks = 10'920},
    .link = {.bytes_a_token = 3072, .bytes_a_second = 2e9, .layers = 4, .call = 1.2e-3}};

inline constexpr std::array kMachines{kA100, kHere};

}  // namespace penstock::simulation
