#include "upstream/load_watch.h"

#include <algorithm>

namespace penstock::upstream {

namespace {

constexpr std::chrono::milliseconds kSilence{5'000};  // messages are due each second

// A replica's numbers are foreign: sums of these stay within what counts them.
constexpr uint32_t kMostCalls = 1'000'000;
constexpr uint32_t kMostGateways = 10'000;

uint32_t calls_of(uint32_t told) { return std::min(told, kMostCalls); }

// What is no number is no use of anything.
float share_of(float told) { return told > 0 ? std::min(told, 1.0F) : 0.0F; }

}  // namespace

routing::LoadReport report_of(const v1::Load& load) {
  return {.serving = load.state() == v1::REPLICA_STATE_READY,
          .running = calls_of(load.running()),
          .waiting = calls_of(load.waiting()),
          .max_running = calls_of(load.max_running()),
          .kv_usage = share_of(load.kv_usage()),
          .calls = calls_of(load.calls()),
          .calls_elsewhere = calls_of(load.calls_elsewhere()),
          .gateways = std::min(load.gateways(), kMostGateways),
          .waiting_tokens = load.waiting_tokens(),
          .tokens = load.tokens(),
          .prompt_tokens = load.prompt_tokens(),
          .steps = load.steps(),
          .preemptions = load.preemptions(),
          .transfers = calls_of(load.transfers()),
          .adapters = {load.adapters().begin(), load.adapters().end()},
          .adapter_slots = calls_of(load.adapter_slots()),
          .config_hash = load.config_hash(),
          .resumes = load.resumes()};
}

std::shared_ptr<LoadWatch> LoadWatch::succeed() {
  retired_ = true;
  return std::make_shared<LoadWatch>(dispatcher_, replica_, clock_);
}

void LoadWatch::on_load(const v1::Load& load) {
  if (retired_) return;
  last_ = clock_.steady_now();
  if (!std::exchange(heard_, true)) dispatcher_->note_back(*replica_);
  dispatcher_->report(*replica_, report_of(load));
}

void LoadWatch::on_end() {
  if (retired_) return;
  // A session that ends may come again at once. One that never came up: nobody is there.
  if (!std::exchange(heard_, false)) dispatcher_->report(*replica_, {.serving = false});
  dispatcher_->note_failure(*replica_, routing::Failure::kLoadEnded);
}

void LoadWatch::look_for_silence(base::SteadyTime now) {
  if (!heard_ || now - last_ <= kSilence) return;
  last_ = now;
  dispatcher_->note_failure(*replica_, routing::Failure::kSilent);
}

}  // namespace penstock::upstream
