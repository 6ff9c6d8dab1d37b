// One deployment before a dispatcher, and requests that ask it for places.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "believed_routes.h"
#include "dispatch/dispatcher.h"
#include "fixed_clock.h"
#include "routing/snapshots.h"

namespace penstock::dispatch {

class CountingWaker final : public Waker {
 public:
  void wake() override { ++woken; }
  std::atomic<int> woken = 0;
};

// A request as the flow holds one.
struct Asking {
  explicit Asking(std::string tenant = {}, base::Priority priority = base::Priority::kNormal) {
    ask.tenant = std::move(tenant);
    ask.priority = priority;
    ask.estimate = {.prompt = 100, .completion = 25};
  }
  PlaceRequest ask;
  std::shared_ptr<CountingWaker> waker = std::make_shared<CountingWaker>();
  Turn turn;
};

class DispatcherTest : public testing::Test {
 protected:
  DispatcherTest() { announce({"r1"}); }

  void announce(const std::vector<std::string>& ids) {
    auto deployment = routing::deployment("mini", {}, limits_);
    routing::RouteSnapshot snapshot{.version = 1, .deployments = {deployment}, .replicas = {}};
    for (const auto& id : ids) snapshot.replicas.push_back(routing::replica(id, "mini"));
    routes_.replace(snapshot);
  }
  void limit(uint32_t max_ongoing, uint32_t max_queued = 100) {
    limits_.max_ongoing = max_ongoing;
    limits_.max_queued = max_queued;
    announce({"r1"});
  }
  Admission admit(Asking& asking) {
    const admission::DeploymentAsk asked{
        .deployment = "mini", .priority = asking.ask.priority, .limits = limits_};
    return routes_.of("mini").admit(asking.turn, asking.ask, asked, [&] { return asking.waker; });
  }
  uint32_t in_flight() { return routes_.replica("mini", 0).in_flight(); }

  test::FixedClock clock_;
  routing::Limits limits_;
  BelievedRoutes routes_{clock_};
};

}  // namespace penstock::dispatch
