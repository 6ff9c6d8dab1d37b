// A ReplicaSet with a clock that tests move, and the few words they speak to it with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "routing/replica_set.h"
#include "snapshots.h"

namespace penstock::routing {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SetFixture : public testing::Test {
 protected:
  // Replicas r0..r(n-1), ready.
  void follow(std::size_t n) {
    replicas_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      replicas_.push_back(replica("r" + std::to_string(i), "mini"));
    }
    follow();
  }
  void follow() { set_.follow(route_, replicas_, now_); }

  std::shared_ptr<Replica> reserve(const Traits& traits = {}) { return set_.reserve(traits, now_); }
  // Whose id was chosen; empty: nobody's. The call stays.
  std::string chosen(const Traits& traits = {}) {
    const auto replica = reserve(traits);
    return replica ? replica->id().value : "";
  }
  // Likewise, and the call ends at once.
  std::string asked(const Traits& traits = {}) {
    const auto replica = reserve(traits);
    if (replica) set_.release(*replica, now_);
    return replica ? replica->id().value : "";
  }
  Replica& at(const std::string& id) { return *set_.find({id}); }
  void report(const std::string& id, const LoadReport& load) { set_.report(at(id), load, now_); }
  milliseconds fail(const std::string& id, Failure failure) {
    return set_.note_failure(at(id), failure, now_);
  }
  void pass(milliseconds time) { now_ += time; }

  DeploymentRoute route_ = deployment("mini");
  std::vector<ReplicaRoute> replicas_;
  base::SteadyTime now_{std::chrono::hours(1)};
  ReplicaSet set_{{}, 1};
};

}  // namespace penstock::routing
