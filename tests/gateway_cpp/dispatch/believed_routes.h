// Routes in force, with the dispatchers of their deployments, for tests.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "base/clock.h"
#include "dispatch/dispatchers.h"
#include "routing/route_table.h"

namespace penstock::dispatch {

class BelievedRoutes {
 public:
  explicit BelievedRoutes(const base::Clock& clock) : dispatchers_(clock, {}, 1) {}

  void replace(const routing::RouteSnapshot& snapshot) {
    dispatchers_.follow(snapshot);
    table_.replace(snapshot);
    dispatchers_.close_left();
  }
  void advance() { dispatchers_.advance(); }

  const routing::RouteTable& table() const { return table_; }
  Dispatchers& dispatchers() { return dispatchers_; }
  routing::RouteReader& routes() { return routes_; }
  DispatchReader& dispatch() { return reader_; }
  Dispatcher& of(const std::string& deployment) { return *dispatchers_.current()->at(deployment); }
  routing::Replica& replica(const std::string& deployment, size_t i) {
    return *of(deployment).replicas().at(i);
  }
  // Whether anything speaks against it.
  bool is_down(const std::string& deployment, const std::string& replica) {
    const auto doubts = of(deployment).doubts();
    return std::ranges::any_of(doubts,
                               [&](const auto& one) { return one.replica.value == replica; });
  }

 private:
  routing::RouteTable table_;
  Dispatchers dispatchers_;
  routing::RouteReader routes_{table_};
  DispatchReader reader_{dispatchers_};
};

}  // namespace penstock::dispatch
