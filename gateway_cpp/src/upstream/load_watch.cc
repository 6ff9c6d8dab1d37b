#include "upstream/load_watch.h"

namespace penstock::upstream {

namespace {

constexpr std::chrono::milliseconds kSilence{5'000};  // messages are due each second

}  // namespace

routing::LoadReport report_of(const v1::Load& load) {
  return {.serving = load.state() == v1::REPLICA_STATE_READY,
          .running = load.running(),
          .waiting = load.waiting(),
          .max_running = load.max_running(),
          .kv_usage = load.kv_usage(),
          .calls = load.calls(),
          .calls_elsewhere = load.calls_elsewhere(),
          .gateways = load.gateways(),
          .waiting_tokens = load.waiting_tokens(),
          .tokens = load.tokens(),
          .prompt_tokens = load.prompt_tokens(),
          .steps = load.steps(),
          .preemptions = load.preemptions(),
          .adapters = {load.adapters().begin(), load.adapters().end()},
          .adapter_slots = load.adapter_slots(),
          .config_hash = load.config_hash()};
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
  dispatcher_->note_failure(*replica_, routing::Failure::kLoadEnded);
}

}  // namespace penstock::upstream
