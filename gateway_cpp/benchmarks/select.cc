// What a choice costs: nanoseconds of reserve() and release() together, by policy and number of
// replicas, and with the name's resolving over many deployments; then what the whole decision costs
// as a request makes it. Not a test: it prints a table.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "dispatch/dispatchers.h"
#include "routing/replica_set.h"
#include "routing/route_table.h"

namespace {

using namespace penstock;
using routing::ReplicaSet;

constexpr int kSamples = 200'000;
constexpr std::uint32_t kPlaces = 64;
constexpr const char* kPolicies[] = {"round_robin", "least_loaded", "power_of_two", "prefix_aware",
                                     "session"};

base::SteadyTime now() { return std::chrono::steady_clock::now(); }

routing::DeploymentRoute deployment(const std::string& name, const std::string& policy) {
  routing::DeploymentRoute route{.name = name, .model = name, .adapters = {}, .limits = {}};
  route.selection_policy = policy;
  return route;
}

std::vector<routing::ReplicaRoute> replicas(const std::string& of, std::size_t count) {
  std::vector<routing::ReplicaRoute> routes;
  for (std::size_t i = 0; i < count; ++i) {
    routes.push_back({.id = {of + "-" + std::to_string(i)},
                      .deployment = of,
                      .address = "host-" + std::to_string(i) + ":1",
                      .state = routing::ReplicaState::kReady,
                      .capacity = kPlaces,
                      .adapters = {}});
  }
  return routes;
}

// Sorted samples, less what it takes to look at the clock.
class Samples {
 public:
  template <class Work>
  void take(const Work& work) {
    const auto began = now();
    work();
    const auto ended = now();
    nanoseconds_.push_back((ended - began).count() - clock_cost());
  }
  long at(double share) {
    std::ranges::sort(nanoseconds_);
    return std::max(0L, nanoseconds_[static_cast<std::size_t>(share * (nanoseconds_.size() - 1))]);
  }

 private:
  static long clock_cost() {
    static const long cost = [] {
      const auto began = now();
      for (int i = 0; i < 100'000; ++i) now();
      return static_cast<long>((now() - began).count() / 100'000);
    }();
    return cost;
  }
  std::vector<long> nanoseconds_;
};

// Requests with one of 256 prefixes of 16 blocks and one of 100,000 sessions.
class Requests {
 public:
  Requests() {
    for (auto& prefix : prefixes_) {
      for (auto& block : prefix) block = random_.next();
    }
  }
  routing::Traits next() {
    return {.session = 1 + random_.below(100'000), .prefix = prefixes_[random_.below(kPrompts)]};
  }
  std::size_t below(std::size_t bound) { return random_.below(bound); }

 private:
  static constexpr std::size_t kPrompts = 256;
  routing::Random random_{7};
  std::vector<std::array<std::uint64_t, 16>> prefixes_{kPrompts};
};

// Half of all places are taken, and each request that comes is followed by one that ends.
void one_deployment(const char* policy, std::size_t count) {
  ReplicaSet set({}, 1);
  set.follow(deployment("mini", policy), replicas("mini", count), now());
  Requests requests;
  std::vector<std::shared_ptr<routing::Replica>> calls;
  while (calls.size() < count * kPlaces / 2) calls.push_back(set.reserve(requests.next(), now()));
  Samples samples;
  for (int i = 0; i < kSamples; ++i) {
    const routing::Traits traits = requests.next();
    auto& ending = calls[requests.below(calls.size())];
    const auto at = now();
    samples.take([&] {
      auto call = set.reserve(traits, at);
      set.release(*ending, at);
      ending = std::move(call);
    });
  }
  std::printf("| %s | %zu | %ld | %ld |\n", policy, count, samples.at(0.5), samples.at(0.99));
}

void many_deployments(const char* policy) {
  constexpr std::size_t kDeployments = 1000;
  constexpr std::size_t kAliases = 10;
  routing::RouteSnapshot snapshot{.version = 1, .deployments = {}, .replicas = {}};
  std::vector<std::unique_ptr<ReplicaSet>> sets;
  for (std::size_t i = 0; i < kDeployments; ++i) {
    const std::string name = "deployment-" + std::to_string(i);
    snapshot.deployments.push_back(deployment(name, policy));
    for (std::size_t alias = 0; alias < kAliases; ++alias) {
      const std::string text = "alias-" + std::to_string(alias);
      snapshot.deployments.back().adapters.push_back({text, text + "@1"});
    }
    sets.push_back(std::make_unique<ReplicaSet>(routing::GatewayPlace{}, i));
    sets.back()->follow(snapshot.deployments.back(), replicas(name, 10), now());
  }
  routing::RouteTable table;
  table.replace(snapshot);
  routing::RouteReader reader(table);
  Requests requests;
  Samples warm_up;
  Samples samples;
  for (int i = 0; i < 3 * kSamples; ++i) {
    const std::size_t which = requests.below(kDeployments);
    const std::string model = "deployment-" + std::to_string(which) + ":alias-" +
                              std::to_string(requests.below(kAliases));
    routing::Traits traits = requests.next();
    const auto at = now();
    (i < 2 * kSamples ? warm_up : samples).take([&] {
      const auto route = reader.read()->resolve(model);
      traits.adapter = route->adapter();
      const auto call = sets[which]->reserve(traits, at);
      sets[which]->release(*call, at);
    });
  }
  std::printf("| %s, resolved | %zu x 10 | %ld | %ld |\n", policy, kDeployments, samples.at(0.5),
              samples.at(0.99));
}

// 1,000 deployments, one of them with 1,000 replicas and the others with 10, and 10 aliases each:
// from the model's name to the place, and the end of an older call.
class Gateway {
 public:
  static constexpr std::size_t kDeployments = 1000;

  explicit Gateway(const std::string& policy) {
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {}, .replicas = {}};
    for (std::size_t i = 0; i < kDeployments; ++i) {
      const std::string name = "deployment-" + std::to_string(i);
      snapshot.deployments.push_back(deployment(name, policy));
      for (std::size_t alias = 0; alias < kAliases; ++alias) {
        const std::string text = "alias-" + std::to_string(alias);
        snapshot.deployments.back().adapters.push_back({text, text + "@1"});
      }
      for (auto& replica : replicas(name, i == 0 ? 1000 : 10)) {
        snapshot.replicas.push_back(std::move(replica));
      }
    }
    table_.replace(snapshot);
    dispatchers_.follow(snapshot);
  }

  // What it was measured over, and among how many deployments.
  void measure(const char* policy, std::size_t first, std::size_t count, const char* over) {
    std::vector<std::vector<dispatch::Place>> calls(kDeployments);
    for (std::size_t i = first; i < first + count; ++i) {
      const std::size_t half = (i == 0 ? 1000 : 10) * kPlaces / 2;
      while (calls[i].size() < half) {
        Request request = next(i);
        calls[i].push_back(decide(request));
      }
    }
    Samples warm_up;
    Samples samples;
    for (int i = 0; i < 2 * kSamples; ++i) {
      const std::size_t which = first + requests_.below(count);
      Request request = next(which);
      auto& ending = calls[which][requests_.below(calls[which].size())];
      (i < kSamples ? warm_up : samples).take([&] {
        dispatch::Place place = decide(request);
        ending = std::move(place);
      });
    }
    std::printf("| %s, admitted | %s | %ld | %ld |\n", policy, over, samples.at(0.5),
                samples.at(0.99));
  }

 private:
  static constexpr std::size_t kAliases = 10;

  struct Request {
    std::string model;
    dispatch::Ask ask;
  };

  Request next(std::size_t which) {
    const routing::Traits traits = requests_.next();
    Request request{.model = "deployment-" + std::to_string(which) + ":alias-" +
                             std::to_string(requests_.below(kAliases)),
                    .ask = {}};
    request.ask.tenant = "tenant-" + std::to_string(requests_.below(100));
    request.ask.session = traits.session;
    request.ask.prefix.assign(traits.prefix.begin(), traits.prefix.end());
    return request;
  }

  dispatch::Place decide(Request& request) {
    const auto route = routes_.read()->resolve(request.model);
    const auto dispatcher = reader_.of(*route->deployment);
    const auto appraisal = dispatcher->appraise(2000, 256, 1);
    request.ask.adapter = route->adapter();
    request.ask.estimate = appraisal.estimate;
    const admission::DeploymentAsk asked{.deployment = route->deployment->name,
                                         .why_unavailable = {},
                                         .priority = request.ask.priority,
                                         .least_prompt = appraisal.least_prompt,
                                         .max_tokens = 256,
                                         .choices = 1,
                                         .limits = route->deployment->limits,
                                         .prompt_field = "messages",
                                         .max_tokens_field = "max_tokens"};
    dispatch::Turn turn;
    dispatcher->admit(turn, request.ask, asked, nullptr);
    if (!turn.has_place()) std::abort();  // half of all are free
    return turn.take();
  }

  const base::SystemClock clock_;
  routing::RouteTable table_;
  dispatch::Dispatchers dispatchers_{clock_, {}, 1};
  routing::RouteReader routes_{table_};
  dispatch::DispatchReader reader_{dispatchers_};
  Requests requests_;
};

}  // namespace

int main() {
  std::printf("| policy | replicas | p50 ns | p99 ns |\n|---|---:|---:|---:|\n");
  for (const char* policy : kPolicies) {
    for (const std::size_t count : {1U, 10U, 100U, 1000U}) one_deployment(policy, count);
  }
  for (const char* policy : kPolicies) many_deployments(policy);
  for (const char* policy : kPolicies) {
    Gateway gateway(policy);
    gateway.measure(policy, 0, 1, "1000, in one of 1000 deployments");
    gateway.measure(policy, 1, Gateway::kDeployments - 1, "1000 x 10");
  }
}
