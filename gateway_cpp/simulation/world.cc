#include "world.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::simulation {
namespace {

constexpr double kReportSeconds = 1;
constexpr double kTickSeconds = 0.05;     // of the gateway's timers
constexpr double kSnapshotSeconds = 0.5;  // until the head tells of a death
constexpr double kReturnSeconds = 20;     // until the replica is back
constexpr std::size_t kTries = 3;

}  // namespace

World::World(const Settings& settings)
    : settings_(settings),
      traffic_(settings.rate, settings.seed),
      random_(settings.seed + 1),
      route_{.name = "mini", .model = "mini", .adapters = {}, .limits = {}},
      set_({}, settings.seed + 2),
      engines_(settings.replicas),
      running_(settings.replicas),
      alive_(settings.replicas, true) {
  route_.selection_policy = settings.policy;
  for (std::size_t i = 0; i < settings.replicas; ++i) {
    routes_.push_back({.id = {"r" + std::to_string(i)},
                       .deployment = "mini",
                       .address = "host-" + std::to_string(i),
                       .state = routing::ReplicaState::kReady,
                       .capacity = kPlaces,
                       .adapters = {}});
    tell(kReportSeconds * static_cast<double>(i) / static_cast<double>(settings.replicas),
         Kind::kReport, i);
  }
  figures_.tenant_wait.resize(20);
  follow();
}

Figures World::run() {
  tell(0, Kind::kTime);
  if (settings_.deaths > 0) tell(1 / settings_.deaths, Kind::kDeath);
  auto first = std::make_shared<Call>();
  first->request = traffic_.next();
  tell(first->request.arrives, Kind::kArrival, 0, first);
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    handle(event);
  }
  for (const Engine& engine : engines_) figures_.replica_tokens.push_back(engine.tokens());
  return std::move(figures_);
}

void World::handle(const Event& event) {
  const bool goes_on = now_ < settings_.seconds;
  switch (event.kind) {
    case Kind::kArrival:
      return arrive(event.call);
    case Kind::kEnd:
      if (event.epoch == engines_[event.engine].epoch()) end(event.call);
      return;
    case Kind::kReport:
      if (auto* told = replica(event.engine)) {
        set_.report(*told, engines_[event.engine].load(), steady());
      }
      if (goes_on) tell(now_ + kReportSeconds, Kind::kReport, event.engine);
      return;
    case Kind::kDeath:
      die(random_.below(engines_.size()));
      if (goes_on) tell(now_ + 1 / settings_.deaths, Kind::kDeath);
      return;
    case Kind::kSnapshot:
      follow();
      return;
    case Kind::kReturn:
      return come_back(event.engine);
    case Kind::kTime:
      if (set_.advance(steady())) send_those_that_wait();
      if (goes_on || !queue_.empty()) tell(now_ + kTickSeconds, Kind::kTime);
      return;
  }
}

void World::arrive(const std::shared_ptr<Call>& call) {
  auto next = std::make_shared<Call>();
  next->request = traffic_.next();
  if (next->request.arrives < settings_.seconds) {
    const double at = next->request.arrives;
    tell(at, Kind::kArrival, 0, std::move(next));
  }
  admission::QueueEntry& entry = call->entry;
  entry.tenant = "tenant-" + std::to_string(call->request.tenant);
  entry.work = call->request.blocks.size() * kBlockTokens / 10 + call->request.completion_tokens;
  entry.since = steady();
  if (queue_.empty() && send(call)) return;
  wait_for_a_place(call);
}

void World::wait_for_a_place(const std::shared_ptr<Call>& call) {
  const std::size_t places = std::size_t{set_.counts().ready} * kPlaces;
  const auto before = queue_.work_before(call->entry.tenant, call->entry.priority);
  const auto estimate = model_.estimate(before, std::max<std::size_t>(places, 1), steady());
  call->estimate = std::chrono::duration<double>(estimate).count();
  waiting_[&call->entry] = call;
  queue_.push(call->entry);
}

void World::send_those_that_wait() {
  while (admission::QueueEntry* entry = queue_.next([](const auto&) { return true; })) {
    const std::shared_ptr<Call> call = waiting_.at(entry);
    if (!send(call)) return;
    queue_.start(*entry);
    waiting_.erase(entry);
  }
}

bool World::send(const std::shared_ptr<Call>& call) {
  call->replica = set_.reserve(
      {.session = call->request.session, .prefix = call->request.blocks, .excluded = call->tried},
      steady());
  if (!call->replica) return false;
  call->engine = std::stoul(call->replica->id().value.substr(1));
  count_wait(*call);
  if (!alive_[call->engine]) {  // nobody has told the gateway yet
    call->tried.push_back(call->replica->id());
    set_.note_failure(*call->replica, routing::Failure::kUnreachable, steady());
    set_.release(*call->replica, steady());
    return send(call);
  }
  Engine& engine = engines_[call->engine];
  call->epoch = engine.epoch();
  call->timing = engine.begin(call->request.blocks, call->request.completion_tokens, now_);
  call->run = model_.started(call->entry.work, steady());
  running_[call->engine].push_back(call);
  tell(call->timing.end, Kind::kEnd, call->engine, call, call->epoch);
  return true;
}

void World::count_wait(Call& call) {
  if (std::exchange(call.has_waited, true)) return;
  const double waited = now_ - call.request.arrives;
  figures_.wait.add(waited);
  figures_.tenant_wait[call.request.tenant].add(waited);
  if (waited > 0.1) figures_.estimate_error.add(std::abs(call.estimate - waited) / waited);
}

void World::end(const std::shared_ptr<Call>& call) {
  engines_[call->engine].end(call->request.completion_tokens);
  std::erase(running_[call->engine], call);
  figures_.first_token.add(call->timing.first_token - call->request.arrives);
  figures_.prompt_blocks += call->request.blocks.size();
  figures_.shared_blocks += call->request.shared_blocks;
  figures_.cached_blocks += call->timing.cached;
  ++figures_.answered;
  model_.ended(call->run, steady());
  set_.note_success(*call->replica, steady());
  set_.release(*call->replica, steady());
  send_those_that_wait();
}

void World::die(std::size_t engine) {
  if (!alive_[engine]) return;
  if (auto* dead = replica(engine)) {
    set_.note_failure(*dead, routing::Failure::kLoadEnded, steady());
  }
  alive_[engine] = false;
  engines_[engine].die();
  for (const auto& call : std::exchange(running_[engine], {})) lose(call);
  tell(now_ + kSnapshotSeconds, Kind::kSnapshot);
  tell(now_ + kReturnSeconds, Kind::kReturn, engine);
}

void World::lose(const std::shared_ptr<Call>& call) {
  model_.ended(call->run, steady(), false);
  set_.note_failure(*call->replica, routing::Failure::kLost, steady());
  set_.release(*call->replica, steady());
  call->tried.push_back(call->replica->id());
  if (now_ >= call->timing.first_token || call->tried.size() >= kTries) {
    ++figures_.lost;
  } else {
    ++figures_.moved;
    if (!send(call)) wait_for_a_place(call);
  }
}

void World::come_back(std::size_t engine) {
  alive_[engine] = true;
  follow();
  set_.note_back(*replica(engine), steady());
  set_.report(*replica(engine), engines_[engine].load(), steady());
  send_those_that_wait();
}

void World::follow() {
  std::vector<routing::ReplicaRoute> alive;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (alive_[i]) alive.push_back(routes_[i]);
  }
  set_.follow(route_, alive, steady());
}

void World::tell(double at, Kind kind, std::size_t engine, std::shared_ptr<Call> call,
                 std::uint32_t epoch) {
  events_.push({at, numbers_++, kind, engine, std::move(call), epoch});
}

base::SteadyTime World::steady() const {
  // An hour behind the epoch, which means "never" here and there.
  return base::SteadyTime(std::chrono::hours(1)) +
         std::chrono::duration_cast<base::SteadyTime::duration>(
             std::chrono::duration<double>(now_));
}

routing::Replica* World::replica(std::size_t engine) {
  return alive_[engine] ? set_.find(routes_[engine].id).get() : nullptr;
}

}  // namespace penstock::simulation
