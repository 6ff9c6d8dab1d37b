// A gateway before many replicas, as discrete events: the gateway's own ReplicaSet, FairQueue and
// WaitModel decide, with a clock that jumps from event to event. No sockets, threads or sleeps; the
// same settings give the same figures.
#pragma once

#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "admission/fair_queue.h"
#include "admission/wait_model.h"
#include "engine.h"
#include "figures.h"
#include "routing/replica_set.h"
#include "traffic.h"

namespace penstock::simulation {

struct Settings {
  std::string policy;
  std::size_t replicas = 1000;
  double rate = 3000;   // requests a second
  double seconds = 60;  // of arrivals
  double deaths = 0.2;  // replicas a second
  std::uint64_t seed = 1;
};

class World {
 public:
  explicit World(const Settings& settings);
  Figures run();

 private:
  enum class Kind : std::uint8_t { kArrival, kEnd, kReport, kDeath, kSnapshot, kReturn, kTime };
  struct Call {
    Request request;
    admission::QueueEntry entry;
    double estimate = 0;  // of its wait, in seconds
    std::vector<routing::ReplicaId> tried;
    std::shared_ptr<routing::Replica> replica;
    std::size_t engine = 0;
    std::uint32_t epoch = 0;
    Engine::Timing timing;
    admission::WaitModel::Run run = 0;
    bool has_waited = false;  // its wait is counted
  };
  struct Event {
    double at;
    std::uint64_t number;  // of equal times the one that was told first
    Kind kind;
    std::size_t engine;
    std::shared_ptr<Call> call;
    std::uint32_t epoch;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void tell(double at, Kind kind, std::size_t engine = 0, std::shared_ptr<Call> call = {},
            std::uint32_t epoch = 0);
  void handle(const Event& event);
  void arrive(const std::shared_ptr<Call>& call);
  void end(const std::shared_ptr<Call>& call);
  void die(std::size_t engine);
  void lose(const std::shared_ptr<Call>& call);
  void come_back(std::size_t engine);
  void follow();

  void wait_for_a_place(const std::shared_ptr<Call>& call);
  void send_those_that_wait();
  bool send(const std::shared_ptr<Call>& call);
  void count_wait(Call& call);
  base::SteadyTime steady() const;
  routing::Replica* replica(std::size_t engine);

  const Settings settings_;
  Traffic traffic_;
  routing::Random random_;
  routing::DeploymentRoute route_;
  routing::ReplicaSet set_;
  admission::FairQueue queue_;
  admission::WaitModel model_;
  std::vector<Engine> engines_;
  std::vector<routing::ReplicaRoute> routes_;
  std::vector<std::vector<std::shared_ptr<Call>>> running_;  // by engine
  std::vector<bool> alive_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<const admission::QueueEntry*, std::shared_ptr<Call>> waiting_;
  std::uint64_t numbers_ = 0;
  double now_ = 0;
  Figures figures_;
};

}  // namespace penstock::simulation
