// What a choice costs: nanoseconds of reserve() and release() together, by policy and number of
// replicas, without an adapter and for one that nobody holds, and with the name's resolving over
// many deployments; then what the whole decision costs as a request makes it. Not a test: it prints
// a table.
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
#include "routing/hashing.h"
#include "routing/replica_set.h"
#include "routing/route_table.h"

namespace {

using namespace penstock;
using routing::ReplicaSet;

constexpr int kSamples = 200'000;
constexpr std::uint32_t kPlaces = 64;
constexpr std::size_t kAliases = 10;        // of each deployment
constexpr std::size_t kVersions = 1000;     // of all adapters
constexpr std::size_t kHeld = 4;            // adapters that a replica holds
constexpr std::uint32_t kAdapterSlots = 8;  // and that it can hold
constexpr const char* kPolicies[] = {"round_robin", "least_loaded", "power_of_two", "prefix_aware",
                                     "session"};

base::SteadyTime now() { return std::chrono::steady_clock::now(); }

routing::DeploymentRoute deployment(const std::string& name, const std::string& policy) {
  routing::DeploymentRoute route{.name = name, .model = name, .adapters = {}, .limits = {}};
  route.selection_policy = policy;
  route.base_family = "family";
  return route;
}

std::string alias_name(std::size_t i) { return "alias-" + std::to_string(i); }

// Each for one version, the last for two.
void add_aliases(routing::DeploymentRoute& route) {
  for (std::size_t i = 0; i < kAliases; ++i) {
    route.adapters.push_back({alias_name(i), alias_name(i) + "@1"});
  }
  const std::string last = alias_name(kAliases - 1);
  route.adapters.back().shares = {{last + "@1", 90}, {last + "@2", 10}};
}

// As many of each adapter.
std::vector<routing::AdapterVersion> versions() {
  std::vector<routing::AdapterVersion> versions;
  for (std::size_t i = 0; i < kVersions; ++i) {
    versions.push_back({.name = alias_name(i % kAliases) + "@" + std::to_string(1 + i / kAliases),
                        .digest = std::string(64, 'd'),
                        .base_family = "family"});
  }
  return versions;
}

std::vector<std::string> held_by(std::size_t replica) {
  std::vector<std::string> held;
  for (std::size_t i = 0; i < kHeld; ++i) {
    held.push_back(alias_name((replica + i) % kAliases) + "@1");
  }
  return held;
}

std::vector<routing::ReplicaRoute> replicas(const std::string& of, std::size_t count) {
  std::vector<routing::ReplicaRoute> routes;
  for (std::size_t i = 0; i < count; ++i) {
    routes.push_back({.id = {of + "-" + std::to_string(i)},
                      .deployment = of,
                      .address = "host-" + std::to_string(i) + ":1",
                      .state = routing::ReplicaState::kReady,
                      .capacity = kPlaces,
                      .adapters = held_by(i)});
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
    add(now() - began);
  }
  void add(std::chrono::nanoseconds between) {
    nanoseconds_.push_back(between.count() - clock_cost());
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

// Requests with one of 250 prefixes of 16 blocks and one of 100,000 sessions.
class Requests {
 public:
  Requests() {
    for (auto& prefix : prefixes_) {
      for (auto& block : prefix) block = random_.next();
    }
  }
  // Prefixes of two adapters are never the same.
  routing::Traits next(std::size_t adapter = 0) {
    const std::size_t prompt = random_.below(kPrompts / kAliases) * kAliases + adapter;
    return {.session = 1 + random_.below(100'000), .prefix = prefixes_[prompt]};
  }
  std::size_t below(std::size_t bound) { return random_.below(bound); }

 private:
  static constexpr std::size_t kPrompts = 250;
  routing::Random random_{7};
  std::vector<std::array<std::uint64_t, 16>> prefixes_{kPrompts};
};

// Half of all places are taken, and each request that comes is followed by one that ends.
void one_deployment(const char* policy, std::size_t count, const std::string& adapter) {
  ReplicaSet set({}, 1);
  set.follow(deployment("mini", policy), replicas("mini", count), now());
  for (const auto& replica : set.replicas()) {
    const routing::LoadReport load{.max_running = kPlaces,
                                   .gateways = 1,
                                   .adapters = replica->route().adapters,
                                   .adapter_slots = kAdapterSlots};
    set.report(*replica, load, now());
  }
  Requests requests;
  std::vector<std::shared_ptr<routing::Replica>> calls;
  while (calls.size() < count * kPlaces / 2) calls.push_back(set.reserve(requests.next(), now()));
  Samples samples;
  for (int i = 0; i < kSamples; ++i) {
    routing::Traits traits = requests.next();
    traits.adapter = adapter;
    auto& ending = calls[requests.below(calls.size())];
    const auto at = now();
    samples.take([&] {
      auto call = set.reserve(traits, at);
      set.release(*ending, at);
      ending = std::move(call);
    });
  }
  std::printf("| %s%s | %zu | %ld | %ld |\n", policy, adapter.empty() ? "" : ", cold adapter",
              count, samples.at(0.5), samples.at(0.99));
}

// By alias, or by name@version, which only the first versions of each adapter are named by: those
// that replicas hold.
void many_deployments(const char* policy, const char* version) {
  constexpr std::size_t kDeployments = 1000;
  routing::RouteSnapshot snapshot{
      .version = 1, .deployments = {}, .replicas = {}, .adapters = versions()};
  std::vector<std::unique_ptr<ReplicaSet>> sets;
  for (std::size_t i = 0; i < kDeployments; ++i) {
    const std::string name = "deployment-" + std::to_string(i);
    snapshot.deployments.push_back(deployment(name, policy));
    add_aliases(snapshot.deployments.back());
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
    const std::size_t adapter = requests.below(kAliases);
    const std::string model =
        "deployment-" + std::to_string(which) + ":" + alias_name(adapter) + version;
    const std::string session = std::to_string(i);
    routing::Traits traits = requests.next(adapter);
    const auto at = now();
    (i < 2 * kSamples ? warm_up : samples).take([&] {
      const auto route =
          reader.read()->resolve(model, [&session] { return routing::hash_text(session); });
      traits.adapter = route->adapter();
      const auto call = sets[which]->reserve(traits, at);
      sets[which]->release(*call, at);
    });
  }
  std::printf("| %s, %s resolved | %zu x 10 | %ld | %ld |\n", policy,
              *version == '\0' ? "alias" : "version", kDeployments, samples.at(0.5),
              samples.at(0.99));
}

// 1,000 deployments, one of them with 1,000 replicas and the others with 10, and 10 aliases each:
// from the model's name to the place, and the end of an older call.
class Gateway {
 public:
  static constexpr std::size_t kDeployments = 1000;

  explicit Gateway(const std::string& policy) {
    routing::RouteSnapshot snapshot{
        .version = 1, .deployments = {}, .replicas = {}, .adapters = versions()};
    for (std::size_t i = 0; i < kDeployments; ++i) {
      const std::string name = "deployment-" + std::to_string(i);
      snapshot.deployments.push_back(deployment(name, policy));
      add_aliases(snapshot.deployments.back());
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
    Steps warm_up;
    Steps steps;
    for (int i = 0; i < 2 * kSamples; ++i) {
      const std::size_t which = first + requests_.below(count);
      Request request = next(which);
      auto& ending = calls[which][requests_.below(calls[which].size())];
      Steps& taken = i < kSamples ? warm_up : steps;
      dispatch::Place place = decide(request, &taken);
      taken.release.take([&] { ending = std::move(place); });
    }
    std::printf("| %s | %s | %ld / %ld | %ld / %ld | %ld / %ld |\n", policy, over,
                steps.resolve.at(0.5), steps.resolve.at(0.99), steps.admit.at(0.5),
                steps.admit.at(0.99), steps.release.at(0.5), steps.release.at(0.99));
  }

 private:
  struct Request {
    std::string model;
    std::string sticky;
    dispatch::PlaceRequest ask;
  };
  struct Steps {
    Samples resolve;  // the name to a deployment and an adapter
    Samples admit;    // admission and choice
    Samples release;  // of an older call
  };

  Request next(std::size_t which) {
    const std::size_t adapter = requests_.below(kAliases);
    const routing::Traits traits = requests_.next(adapter);
    Request request{.model = "deployment-" + std::to_string(which) + ":" + alias_name(adapter),
                    .sticky = std::to_string(traits.session),
                    .ask = {}};
    request.ask.tenant = "tenant-" + std::to_string(requests_.below(100));
    request.ask.session = traits.session;
    request.ask.prefix.assign(traits.prefix.begin(), traits.prefix.end());
    return request;
  }

  dispatch::Place decide(Request& request, Steps* steps = nullptr) {
    const auto began = now();
    const auto route = routes_.read()->resolve(
        request.model, [&request] { return routing::hash_text(request.sticky); });
    const auto resolved = now();
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
    dispatch::Place place = turn.take();
    if (steps != nullptr) {
      steps->admit.add(now() - resolved);
      steps->resolve.add(resolved - began);
    }
    return place;
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
    for (const char* adapter : {"", "cold@1"}) {
      for (const std::size_t count : {1U, 10U, 100U, 1000U}) one_deployment(policy, count, adapter);
    }
  }
  for (const char* policy : kPolicies) {
    for (const char* version : {"", "@1"}) many_deployments(policy, version);
  }
  std::printf("\n| policy | replicas | resolve p50 / p99 ns | admit and select | release |\n");
  std::printf("|---|---|---:|---:|---:|\n");
  for (const char* policy : kPolicies) {
    Gateway gateway(policy);
    gateway.measure(policy, 0, 1, "1000, in one of 1000 deployments");
    gateway.measure(policy, 1, Gateway::kDeployments - 1, "1000 x 10");
  }
}
