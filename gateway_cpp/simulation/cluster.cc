#include "cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::simulation {
namespace {

constexpr std::uint32_t kPrefills = 0;  // workers of kPrefillDecode
constexpr std::uint32_t kDecodes = 1;

}  // namespace

double LinkUse::arrival(std::uint32_t tokens, double begin, double end) {
  const double all = tokens * link_.bytes_a_token / link_.bytes_a_second;
  const double first_layer = begin + (end - begin) / link_.layers;
  return free_ = std::max(std::max(first_layer, free_) + all, end + all / link_.layers);
}

Cluster::Cluster(const Machine& machine, Pattern pattern, const PatternLoad& load)
    : machine_(machine), pattern_(pattern), load_(load), set_({}, load.seed), link_(machine.link) {
  const bool is_double = pattern == Pattern::kDoubleEngine;
  const StepEngine engine(is_double ? machine.double_costs : machine.costs,
                          is_double ? machine.double_limits : machine.limits);
  workers_.assign(is_double ? 1 : 2, {.engine = engine, .step = {}});
  // Whole blocks, and not the last token, which must be computed to have its answer.
  const std::uint32_t block = machine.limits.block_tokens;
  const auto share = static_cast<std::uint32_t>(std::lround(load.prompt * (1 - load.balance)));
  moved_ = std::min(share, load.prompt - 1) / block * block;

  routing::DeploymentRoute route{.name = "m", .model = "m", .adapters = {}, .limits = {}};
  route.selection_policy = load.policy;
  std::vector<routing::ReplicaRoute> replicas;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    replicas.push_back({.id = {std::to_string(i)},
                        .deployment = "m",
                        .address = "host-" + std::to_string(i),
                        .state = routing::ReplicaState::kReady,
                        .capacity = load.requests,
                        .adapters = {}});
  }
  set_.follow(route, replicas, steady());

  routing::Random random(load.seed);
  for (double at = 0; calls_.size() < load.requests;) {
    at -= std::log((double(random.next() >> 11U) + 1) * 0x1p-53) / load.rate;
    tell(at, Kind::kArrival, static_cast<std::uint32_t>(calls_.size()));
    calls_.push_back({.arrives = at, .replica = {}});
  }
}

void Cluster::run(Latencies& latencies) {
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  for (const Call& call : calls_) {
    latencies.first_token.add(call.first_token - call.arrives);
    latencies.whole.add(call.end - call.arrives);
    if (load_.completion < 2) continue;
    latencies.token.add((call.end - call.first_token) / (load_.completion - 1));
  }
  latencies.grows = latencies.grows || grows();
}

void Cluster::handle(const Event& event) {
  switch (event.kind) {
    case Kind::kArrival:
      return arrive(event.which);
    case Kind::kPrepared:  // one token more than is sent: an engine always answers with one
      workers_[kPrefills].engine.add({.id = event.which, .prompt = moved_ + 1, .completion = 1});
      return begin_step(kPrefills);
    case Kind::kReceived:
      workers_[kDecodes].engine.add({.id = event.which,
                                     .prompt = load_.prompt,
                                     .present = moved_,
                                     .completion = load_.completion});
      return begin_step(kDecodes);
    case Kind::kStepEnd:
      return end_step(event.which);
  }
}

void Cluster::arrive(std::uint32_t call) {
  if (pattern_ == Pattern::kPrefillDecode) {
    unprepared_.push_back(call);
    return prepare();
  }
  calls_[call].replica = set_.reserve({}, steady());
  const auto worker = static_cast<std::uint32_t>(std::stoul(calls_[call].replica->id().value));
  workers_[worker].engine.add({.id = call, .prompt = load_.prompt, .completion = load_.completion});
  begin_step(worker);
}

void Cluster::prepare() {
  const std::uint32_t tokens = load_.prompt + load_.completion;
  while (!unprepared_.empty() && workers_[kDecodes].engine.reserve(unprepared_.front(), tokens)) {
    tell(now_ + machine_.link.call, Kind::kPrepared, unprepared_.front());
    unprepared_.pop_front();
  }
}

void Cluster::begin_step(std::uint32_t worker) {
  Worker& one = workers_[worker];
  if (!one.step.parts.empty()) return;
  one.step = one.engine.begin();
  one.began = now_;
  if (!one.step.parts.empty()) tell(now_ + one.step.seconds, Kind::kStepEnd, worker);
}

void Cluster::end_step(std::uint32_t worker) {
  Worker& one = workers_[worker];
  const StepEngine::Step step = std::exchange(one.step, {});
  one.engine.end(step);
  const bool only_prefills = pattern_ == Pattern::kPrefillDecode && worker == kPrefills;
  for (const StepEngine::Part& part : step.parts) {
    only_prefills ? send(part, one.began) : take(part);
  }
  if (pattern_ == Pattern::kPrefillDecode) prepare();
  begin_step(worker);
}

void Cluster::take(const StepEngine::Part& part) {
  Call& call = calls_[part.id];
  if (part.gives_token && call.first_token == 0) call.first_token = now_;
  if (!part.is_last) return;
  call.end = now_;
  if (call.replica) set_.release(*call.replica, steady());
}

void Cluster::send(const StepEngine::Part& part, double began) {
  const double arrival = link_.arrival(part.prefilled, began, now_);
  if (part.is_last) tell(arrival + machine_.link.call, Kind::kReceived, part.id);
}

// Whether those that came last waited far longer than those before half of them had come.
bool Cluster::grows() const {
  const auto mean = [this](std::size_t from, std::size_t to) {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += calls_[i].first_token - calls_[i].arrives;
    return sum / double(to - from);
  };
  const std::size_t quarter = calls_.size() / 4;
  return quarter > 0 && mean(3 * quarter, 4 * quarter) > 2 * mean(quarter, 2 * quarter) + 1;
}

void Cluster::tell(double at, Kind kind, std::uint32_t which) {
  events_.push({at, numbers_++, kind, which});
}

base::SteadyTime Cluster::steady() const {
  // An hour behind the epoch, which means "never" here and there.
  return base::SteadyTime(std::chrono::hours(1)) +
         std::chrono::duration_cast<base::SteadyTime::duration>(
             std::chrono::duration<double>(now_));
}

}  // namespace penstock::simulation
