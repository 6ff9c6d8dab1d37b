// An engine that works in steps, as vLLM does: a step has a budget of tokens, running decodes take
// one each, and prompts share what is left in chunks, those that came first first. A sequence
// begins when there are blocks for all that it can become, so that none is ever preempted; vLLM is
// bolder, which shows where KV runs out. Seconds, tokens and blocks; no real time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace penstock::simulation {

// What a step takes, in seconds.
struct StepCosts {
  double fixed = 0;    // of each step
  double weights = 0;  // the least that the layers take, however few tokens there are
  double token = 0;    // of the layers, for each token
  double decode = 0;   // for each sequence that decodes, besides
  double pair = 0;     // of attention, for each new token of a prompt and each token before it
  double context = 0;  // of attention, for each token before one that is decoded
};

// The sequences of a batch may not be more than its budget.
struct StepLimits {
  std::uint32_t budget = 2048;    // vLLM's max_num_batched_tokens
  std::uint32_t sequences = 256;  // its max_num_seqs
  std::uint32_t block_tokens = 16;
  std::uint32_t blocks = 0;
};

struct Batch {
  std::uint32_t prefill_tokens = 0;
  std::uint32_t decodes = 0;
  double pairs = 0;
  double contexts = 0;
};

double seconds_of(const Batch& batch, const StepCosts& costs);

class StepEngine {
 public:
  struct Sequence {
    std::uint32_t id = 0;  // of two prompts, the lesser goes first
    std::uint32_t prompt = 0;
    std::uint32_t present = 0;  // tokens of it whose KV is here; fewer than all
    std::uint32_t completion = 0;
  };
  struct Part {
    std::uint32_t id = 0;
    std::uint32_t prefilled = 0;
    bool gives_token = false;
    bool is_last = false;  // with that token the sequence is done
  };
  struct Step {
    std::vector<Part> parts;  // none: there is nothing to do
    Batch batch;
    double seconds = 0;
  };

  StepEngine(const StepCosts& costs, const StepLimits& limits);

  // Pins blocks for a sequence whose KV comes from elsewhere; false: not so many are free.
  bool reserve(std::uint32_t id, std::uint32_t tokens);
  // It waits from now on.
  void add(const Sequence& sequence) { waiting_.push_back(sequence); }

  Step begin();
  // Exactly once for each step with parts, before the next begins.
  void end(const Step& step);

  std::uint32_t free_blocks() const { return free_; }
  std::uint32_t blocks_of(std::uint32_t tokens) const;

 private:
  struct Running {
    Sequence sequence;
    std::uint32_t computed = 0;  // of prompt and completion
    std::uint32_t given = 0;     // tokens of the completion
  };

  bool admit_next();
  std::uint32_t prefill(Running& running, std::uint32_t most, Step& step) const;

  StepCosts costs_;
  StepLimits limits_;
  std::uint32_t free_;
  std::map<std::uint32_t, std::uint32_t> held_;  // blocks, by sequence
  std::deque<Sequence> waiting_;
  std::map<std::uint32_t, Running> running_;
  std::uint32_t admitted_ = 0;  // the sequence that admit_next() took last
};

}  // namespace penstock::simulation
