#include "step_engine.h"

#include <algorithm>

namespace penstock::simulation {

double seconds_of(const Batch& batch, const StepCosts& costs) {
  const double layers = costs.token * (batch.prefill_tokens + batch.decodes);
  return costs.fixed + std::max(costs.weights, layers) + costs.decode * batch.decodes +
         costs.pair * batch.pairs + costs.context * batch.contexts;
}

StepEngine::StepEngine(const StepCosts& costs, const StepLimits& limits)
    : costs_(costs), limits_(limits), free_(limits.blocks) {}

std::uint32_t StepEngine::blocks_of(std::uint32_t tokens) const {
  return (tokens + limits_.block_tokens - 1) / limits_.block_tokens;
}

bool StepEngine::reserve(std::uint32_t id, std::uint32_t tokens) {
  const std::uint32_t blocks = blocks_of(tokens);
  if (blocks > free_) return false;
  free_ -= blocks;
  held_[id] = blocks;
  return true;
}

bool StepEngine::admit_next() {
  if (waiting_.empty() || running_.size() >= limits_.sequences) return false;
  const Sequence& next = waiting_.front();
  if (!held_.contains(next.id) && !reserve(next.id, next.prompt + next.completion)) return false;
  admitted_ = next.id;
  running_[next.id] = {.sequence = next, .computed = next.present};
  waiting_.pop_front();
  return true;
}

std::uint32_t StepEngine::prefill(Running& running, std::uint32_t most, Step& step) const {
  const Sequence& sequence = running.sequence;
  const std::uint32_t chunk = std::min(most, sequence.prompt - running.computed);
  if (chunk == 0) return 0;
  const bool whole = running.computed + chunk == sequence.prompt;
  step.parts.push_back({.id = sequence.id,
                        .prefilled = chunk,
                        .gives_token = whole,
                        .is_last = whole && sequence.completion == 1});
  step.batch.prefill_tokens += chunk;
  step.batch.pairs += double(chunk) * running.computed + double(chunk) * (chunk + 1.0) / 2;
  return chunk;
}

StepEngine::Step StepEngine::begin() {
  Step step;
  for (auto& [id, running] : running_) {
    if (running.given == 0) continue;
    const bool last = running.given + 1 == running.sequence.completion;
    step.parts.push_back({.id = id, .prefilled = 0, .gives_token = true, .is_last = last});
    step.batch.contexts += running.computed;
    ++step.batch.decodes;
  }
  std::uint32_t left = limits_.budget - step.batch.decodes;
  for (auto& [id, running] : running_) {
    if (running.given == 0) left -= prefill(running, left, step);
  }
  while (left > 0 && admit_next()) left -= prefill(running_[admitted_], left, step);
  if (!step.parts.empty()) step.seconds = seconds_of(step.batch, costs_);
  return step;
}

void StepEngine::end(const Step& step) {
  for (const Part& part : step.parts) {
    Running& running = running_.at(part.id);
    running.computed += part.prefilled > 0 ? part.prefilled : 1;
    if (part.gives_token) ++running.given;
    if (!part.is_last) continue;
    free_ += held_.at(part.id);
    held_.erase(part.id);
    running_.erase(part.id);
  }
}

}  // namespace penstock::simulation
