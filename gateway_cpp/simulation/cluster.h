// Requests before engines that work in steps, by one of four patterns, as discrete events. Who gets
// a request is the gateway's own ReplicaSet's choice where there is one.
#pragma once

#include <deque>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "figures.h"
#include "machines.h"
#include "routing/replica_set.h"

namespace penstock::simulation {

enum class Pattern : std::uint8_t { kDataParallel, kPrefillDecode, kDoubleEngine };

struct PatternLoad {
  double rate = 1;  // requests a second, Poisson
  std::uint32_t requests = 1000;
  std::uint32_t prompt = 3000;  // tokens
  std::uint32_t completion = 100;
  double balance = 0;  // kPrefillDecode: the share of a prompt that is left to the decode engine
  std::string policy = "power_of_two";  // kDataParallel
  std::uint64_t seed = 1;
};

struct Latencies {
  Distribution first_token;  // seconds from arrival
  Distribution token;        // seconds for each one after the first
  Distribution whole;
  bool grows = false;  // more came than could be done: figures depend on how long it went on
};

// When KV that steps compute has come to the other engine.
class LinkUse {
 public:
  explicit LinkUse(const Link& link) : link_(link) {}
  // Of `tokens` that a step computes from `begin` to `end`. Each layer is sent once it is done, and
  // after what was sent before: what is left after the step's end counts.
  double arrival(std::uint32_t tokens, double begin, double end);

 private:
  const Link link_;
  double free_ = 0;
};

class Cluster {
 public:
  Cluster(const Machine& machine, Pattern pattern, const PatternLoad& load);
  // Adds to what `latencies` has.
  void run(Latencies& latencies);

 private:
  enum class Kind : std::uint8_t { kArrival, kPrepared, kReceived, kStepEnd };
  struct Call {
    double arrives = 0;
    double first_token = 0;
    double end = 0;
    std::shared_ptr<routing::Replica> replica;
  };
  struct Event {
    double at;
    std::uint64_t number;  // of equal times the one that was told first
    Kind kind;
    std::uint32_t which;  // call or engine
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  struct Worker {
    StepEngine engine;
    StepEngine::Step step;  // under way
    double began = 0;
  };

  void tell(double at, Kind kind, std::uint32_t which);
  void handle(const Event& event);
  void arrive(std::uint32_t call);
  void prepare();
  void begin_step(std::uint32_t worker);
  void end_step(std::uint32_t worker);
  void take(const StepEngine::Part& part);
  void send(const StepEngine::Part& part, double began);
  bool grows() const;
  base::SteadyTime steady() const;

  const Machine machine_;
  const Pattern pattern_;
  const PatternLoad load_;
  std::uint32_t moved_ = 0;  // tokens of a prompt whose KV is sent
  routing::ReplicaSet set_;
  std::vector<Worker> workers_;  // kPrefillDecode: the one that prefills first
  LinkUse link_;
  std::vector<Call> calls_;
  std::deque<std::uint32_t> unprepared_;  // calls that wait for room where they will decode
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t numbers_ = 0;
  double now_ = 0;
};

}  // namespace penstock::simulation
