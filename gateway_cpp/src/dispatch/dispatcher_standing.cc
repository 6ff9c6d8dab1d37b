// How a deployment stands, for pages, reports and those that ask before they go there.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "dispatch/dispatcher.h"

namespace penstock::dispatch {

std::vector<std::shared_ptr<routing::Replica>> Dispatcher::replicas() const {
  const std::lock_guard lock(mutex_);
  return {replicas_.replicas().begin(), replicas_.replicas().end()};
}

std::vector<std::shared_ptr<routing::Replica>> Dispatcher::ready_replicas() const {
  auto ready = replicas();
  const std::lock_guard lock(mutex_);
  std::erase_if(ready, [](const auto& replica) { return !replica->standing().ready; });
  return ready;
}

DeploymentStanding Dispatcher::standing() const {
  const std::lock_guard lock(mutex_);
  const auto doubts = replicas_.doubts(clock_.steady_now());
  const auto is_ready = [this](const routing::Doubt& doubt) {
    return replicas_.find(doubt.replica)->standing().ready;
  };
  const auto doubted = static_cast<std::uint32_t>(std::ranges::count_if(doubts, is_ready));
  const bool waits = replicas_.counts().with_room == 0 && replicas_.counts().ready > 0;
  return {.replicas = static_cast<std::uint32_t>(replicas_.replicas().size()),
          .usable = replicas_.counts().ready - doubted,
          .queued = queued(),
          .broken = continuing(false),
          .moving = continuing(true),
          .estimated_wait =
              waits ? wait_for({}, base::Priority::kNormal) : std::chrono::milliseconds(0),
          .ejections = replicas_.ejections()};
}

std::uint32_t Dispatcher::continuing(bool runs_on) const {
  return static_cast<std::uint32_t>(std::ranges::count_if(retries_, [runs_on](const Turn* turn) {
    return turn->ask_->continues != 0 && turn->ask_->runs_on == runs_on;
  }));
}

// What a request finds that comes now.
QueueTurn Dispatcher::turn_of(const PlaceRequest& ask,
                              const admission::DeploymentLoad& load) const {
  QueueTurn turn{.estimated_wait = load.estimated_wait,
                 .ready = load.ready,
                 .with_room = load.with_room,
                 .running = in_flight_};
  if (load.with_room > 0 && queue_.empty()) return turn;
  turn.work_before = work_before(ask.tenant, ask.priority);
  turn.work_a_second = wait_.pace_of(in_flight_, clock_.steady_now());
  turn.ahead = queue_.waiting();
  return turn;
}

// While there is a queue, as many calls run as may: they are the places.
std::chrono::milliseconds Dispatcher::wait_for(std::string_view tenant,
                                               base::Priority priority) const {
  return wait_.estimate(work_before(tenant, priority), in_flight_, clock_.steady_now());
}

// What nearly all of those that are told this wait at most.
std::chrono::milliseconds Dispatcher::longest_wait(const PlaceRequest& ask,
                                                   std::chrono::milliseconds estimated) const {
  const auto now = clock_.steady_now();
  if (wait_.is_sure()) return slack_.within(estimated, now);
  return wait_.at_most(work_before(ask.tenant, ask.priority), in_flight_, now);
}

// Those that were admitted before go first, whoever comes.
std::uint64_t Dispatcher::work_before(std::string_view tenant, base::Priority priority) const {
  return ahead_.work + queue_.work_before(tenant, priority);
}

std::vector<routing::Doubt> Dispatcher::doubts() const {
  const std::lock_guard lock(mutex_);
  return replicas_.doubts(clock_.steady_now());
}

bool Dispatcher::is_ready_besides(std::span<const routing::ReplicaId> excluded) const {
  const std::lock_guard lock(mutex_);
  return ready_besides(excluded);
}

bool Dispatcher::is_ready_to_continue(std::uint32_t config,
                                      std::span<const routing::ReplicaId> excluded) const {
  const std::lock_guard lock(mutex_);
  return replicas_.is_ready_to_continue(config, excluded);
}

// The day ends by itself, also where the head is away then.
bool Dispatcher::is_out_of_budget() const {
  const bool is_over =
      budget_resets_at_ != base::WallTime{} && clock_.wall_now() >= budget_resets_at_;
  return budget_used_up_ && !is_over;
}

bool Dispatcher::is_usable_for(std::string_view adapter) {
  const std::lock_guard lock(mutex_);
  return !is_out_of_budget() && replicas_.another_is_usable({}, clock_.steady_now()) &&
         (adapter.empty() || replicas_.is_ready_for(adapter));
}

bool Dispatcher::another_is_usable(const routing::ReplicaId& besides) {
  const std::lock_guard lock(mutex_);
  return replicas_.another_is_usable(besides, clock_.steady_now());
}

}  // namespace penstock::dispatch
