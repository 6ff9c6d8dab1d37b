// Engines that die with a thousand streams, before a dispatcher whose clock jumps from event to
// event. Their load reports come late, and some never.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "believed_routes.h"
#include "dispatch/dispatcher.h"
#include "fixed_clock.h"
#include "routing/hashing.h"
#include "routing/snapshots.h"

namespace penstock::dispatch {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One that dies takes its streams along; each hears of it a little later, and goes on elsewhere.
class DyingFleet {
 public:
  struct Shape {
    std::vector<std::string> configs;  // of each replica
    std::uint32_t places = 250;        // of each
    std::uint64_t kv_tokens = 130'000;
    milliseconds between{12};  // newcomers
    std::uint64_t seed = 1;
  };

  explicit DyingFleet(Shape shape) : shape_(std::move(shape)), random_(shape_.seed) {
    limits_.max_ongoing = shape_.places;
    limits_.max_queued = 200;
    limits_.wait_budget = seconds(10);
    limits_.kv_pressure = 0.93F;
    engines_.resize(shape_.configs.size());
    announce();
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      tell(i);
      at(milliseconds(random_.below(100)), [this, i] { step(i); });
    }
    at(milliseconds(0), [this] { come(); });
  }

  void run(milliseconds time) {
    const auto end = clock_.steady_now() + time;
    while (!events_.empty() && events_.begin()->first <= end) {
      auto next = events_.extract(events_.begin());
      clock_.advance(next.key() - clock_.steady_now());
      next.mapped()();
    }
  }
  void kill(std::size_t i) {
    Engine& engine = engines_[i];
    engine.dead = true;
    for (auto* all : {&engine.running, &engine.waiting}) {
      for (Stream* stream : std::exchange(*all, {})) {
        at(milliseconds(random_.below(200)), [this, i, stream] { hear_of_death(*stream, i); });
      }
    }
  }

  std::size_t running() const {
    std::size_t all = 0;
    for (const Engine& engine : engines_) all += engine.running.size() + engine.waiting.size();
    return all;
  }
  std::size_t broken() const { return broken_.size(); }       // that wait to go on
  std::size_t most_waiting() const { return most_waiting_; }  // in one engine
  int preempted() const { return preempted_; }
  int overtaken() const { return overtaken_; }  // newcomers that had a place those could have had
  int refused() const { return refused_; }
  int went_on() const { return went_on_; }
  milliseconds longest_pause() const { return longest_pause_; }
  double came_in() const { return let_in_ / std::max(1.0, again_); }  // of those told to come again

 private:
  struct Stream final : Waker {
    explicit Stream(DyingFleet& of) : fleet(&of) {}
    void wake() override { fleet->woken(*this); }
    DyingFleet* fleet;
    PlaceRequest ask;
    std::string body;
    Turn turn;
    Place place;
    std::uint32_t prompt = 0, made = 0, length = 0;
    std::uint32_t config = 0;
    std::size_t from = 0;  // where it broke
    base::SteadyTime broke{};
    bool was_refused = false;
  };
  struct Engine {
    std::vector<Stream*> running, waiting;
    bool dead = false;
    std::uint64_t kv() const {
      std::uint64_t all = 0;
      for (const Stream* stream : running) all += stream->prompt + stream->made;
      return all;
    }
  };

  Dispatcher& here() { return routes_.of("mini"); }
  void at(milliseconds in, std::function<void()> what) {
    events_.emplace(clock_.steady_now() + in, std::move(what));
  }
  std::string id_of(std::size_t i) const { return "r" + std::to_string(i); }
  std::size_t number_of(const routing::Replica& replica) const {
    return std::stoul(replica.id().value.substr(1));
  }
  routing::Replica& replica(std::size_t i) {
    for (const auto& one : here().replicas()) {
      if (one->id().value == id_of(i)) return *one;
    }
    throw std::logic_error("no such replica");
  }
  void announce() {
    routing::RouteSnapshot snapshot{
        .version = 1, .deployments = {routing::deployment("mini", {}, limits_)}, .replicas = {}};
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      snapshot.replicas.push_back(routing::replica(id_of(i), "mini"));
    }
    routes_.replace(snapshot);
  }

  void come() {
    streams_.push_back(std::make_unique<Stream>(*this));
    Stream& stream = *streams_.back();
    stream.prompt = 250 + random_.below(500);
    stream.length = 100 + random_.below(300);
    stream.body = std::to_string(streams_.size());
    stream.ask.body = stream.body;
    stream.ask.estimate = {.prompt = stream.prompt, .completion = 250};
    ask(stream);
    at(shape_.between, [this] { come(); });
  }
  void ask(Stream& stream) {
    const auto outcome =
        here().admit(stream.turn, stream.ask, {.deployment = "mini", .limits = limits_},
                     [&stream] { return handle(stream); });
    again_ += stream.was_refused ? 1 : 0;
    let_in_ += stream.was_refused && !outcome.refusal ? 1 : 0;
    stream.was_refused = outcome.refusal.has_value();
    refused_ += stream.was_refused ? 1 : 0;
    if (outcome.refusal) at(outcome.refusal->retry_after, [this, &stream] { ask(stream); });
    if (!outcome.refusal && stream.turn.has_place()) woken(stream);
  }
  static std::shared_ptr<Waker> handle(Stream& stream) {
    return std::shared_ptr<Waker>(std::shared_ptr<void>(), &stream);
  }

  // As its place was given: who waits for one like that has been passed.
  void woken(Stream& stream) {
    if (!stream.turn.has_place()) return;
    const bool is_new = stream.config == 0;
    at(milliseconds(1), [this, &stream] { begin(stream); });
    if (!is_new) return;
    // Its place is not known yet: taken and looked at at once, in its own time.
    stream.place = stream.turn.take();
    const std::size_t to = number_of(*stream.place.replica());
    const std::uint32_t config = stream.place.config();
    overtaken_ += std::ranges::any_of(broken_, [=](const Stream* one) {
      return one->config == config && one->from != to && !one->turn.has_place();
    });
  }
  void begin(Stream& stream) {
    if (!stream.place) stream.place = stream.turn.take();
    stream.config = stream.place.config();
    const std::size_t i = number_of(*stream.place.replica());
    if (broken_.erase(&stream) > 0) {
      ++went_on_;
      longest_pause_ = std::max(
          longest_pause_, std::chrono::ceil<milliseconds>(clock_.steady_now() - stream.broke));
    }
    if (engines_[i].dead) return hear_of_death(stream, i);
    engines_[i].waiting.push_back(&stream);
  }

  void hear_of_death(Stream& stream, std::size_t i) {
    stream.place.lost();
    stream.place.cut_short();
    stream.place.release();
    stream.broke = clock_.steady_now();
    stream.from = i;
    stream.ask.continues = stream.config;
    stream.ask.delivered = stream.made;
    broken_.insert(&stream);
    EXPECT_TRUE(
        here().again(stream.turn, stream.ask, {{id_of(i)}}, [&stream] { return handle(stream); }));
    woken(stream);
  }

  // Prompts as far as there is memory and time, then two tokens of each.
  void step(std::size_t i) {
    Engine& engine = engines_[i];
    if (engine.dead) return;
    std::int64_t budget = 8192;
    while (!engine.waiting.empty() && budget > 0) {
      Stream* first = engine.waiting.front();
      if (engine.kv() + first->prompt + first->made > shape_.kv_tokens) break;
      budget -= first->prompt + first->made;
      engine.waiting.erase(engine.waiting.begin());
      engine.running.push_back(first);
    }
    for (Stream* stream : engine.running) stream->made += 2;
    std::erase_if(engine.running, [this](Stream* stream) { return has_ended(*stream); });
    most_waiting_ = std::max(most_waiting_, engine.waiting.size());
    while (engine.kv() > shape_.kv_tokens) {
      ++preempted_;
      engine.waiting.insert(engine.waiting.begin(), engine.running.back());
      engine.running.pop_back();
    }
    if (random_.below(10) != 0) at(milliseconds(20 + random_.below(60)), [this, i] { tell(i); });
    at(milliseconds(100), [this, i] { step(i); });
    here().advance();
  }
  bool has_ended(Stream& stream) {
    if (stream.made < stream.length) return false;
    at(milliseconds(0), [&stream] { stream.place.release(); });
    return true;
  }
  void tell(std::size_t i) {
    const Engine& engine = engines_[i];
    if (engine.dead) return;
    const auto calls = static_cast<std::uint32_t>(engine.running.size() + engine.waiting.size());
    here().report(replica(i),
                  {.running = static_cast<std::uint32_t>(engine.running.size()),
                   .waiting = static_cast<std::uint32_t>(engine.waiting.size()),
                   .max_running = shape_.places,
                   .kv_usage = static_cast<float>(engine.kv()) / float(shape_.kv_tokens),
                   .calls = calls,
                   .gateways = 1,
                   .config_hash = shape_.configs[i],
                   .resumes = true});
  }

  const Shape shape_;
  routing::Random random_;
  routing::Limits limits_;
  test::FixedClock clock_;
  BelievedRoutes routes_{clock_};
  std::vector<Engine> engines_;
  std::multimap<base::SteadyTime, std::function<void()>> events_;  // outlives whom it wakes
  std::set<Stream*> broken_;
  std::vector<std::unique_ptr<Stream>> streams_;
  int preempted_ = 0, overtaken_ = 0, refused_ = 0, went_on_ = 0;
  double let_in_ = 0, again_ = 0;
  milliseconds longest_pause_{0};
  std::size_t most_waiting_ = 0;
};

}  // namespace penstock::dispatch
