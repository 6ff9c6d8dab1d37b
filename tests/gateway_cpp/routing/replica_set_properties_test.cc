// Whatever happens in whatever order, a set's counts are those that counting anew gives.
#include <map>
#include <set>

#include "routing/hashing.h"
#include "set_fixture.h"

namespace penstock::routing {
namespace {

constexpr const char* kPolicies[] = {"round_robin", "least_loaded", "power_of_two", "prefix_aware",
                                     "session"};

class Properties : public SetFixture, public testing::WithParamInterface<std::uint64_t> {
 protected:
  Properties() {
    route_.limits.progress_deadline = seconds(3);
    follow(6);
  }

  std::size_t below(std::size_t bound) { return random_.below(bound); }
  std::shared_ptr<Replica> any() {
    const auto replicas = set_.replicas();
    return replicas.empty() ? nullptr : replicas[below(replicas.size())];
  }

  void send() {
    const std::uint64_t blocks[] = {below(5), below(20) + 100};
    const std::vector<ReplicaId> tried(below(3), ReplicaId{"r" + std::to_string(below(8))});
    const Traits traits{.adapter = below(2) == 0 ? "pirate@1" : "",
                        .session = below(3),
                        .prefix = std::span(blocks, below(3)),
                        .excluded = tried};
    const bool sound = any_sound(tried);
    const auto replica = set_.reserve(traits, now_);
    if (!replica) return;
    EXPECT_TRUE(std::ranges::find(tried, replica->id()) == tried.end());
    EXPECT_TRUE(replica->standing().ready);
    EXPECT_FALSE(replica->standing().pressured);
    EXPECT_TRUE(!sound || !replica->standing().spare || replica->in_flight() > 0);
    if (route_.limits.max_ongoing > 0 && replica->reported().gateways <= 1) {
      EXPECT_LE(replica->in_flight(), std::max(1U, route_.limits.max_ongoing));
    }
    calls_.push_back(replica);
    ++expected_[replica.get()];
  }
  bool any_sound(const std::vector<ReplicaId>& but) {
    return std::ranges::any_of(set_.replicas(), [&](const auto& replica) {
      return replica->standing().sound && std::ranges::find(but, replica->id()) == but.end();
    });
  }
  void end() {
    if (calls_.empty()) return;
    std::swap(calls_[below(calls_.size())], calls_.back());
    --expected_[calls_.back().get()];
    set_.release(*calls_.back(), now_);
    calls_.pop_back();
  }
  void tell() {
    const auto replica = any();
    if (!replica) return;
    const auto own = replica->in_flight();
    const auto others = static_cast<std::uint32_t>(below(4));
    LoadReport load{.serving = below(10) != 0,
                    .running = own,
                    .waiting = static_cast<std::uint32_t>(below(2)),
                    .max_running = 4,
                    .kv_usage = static_cast<float>(below(11)) / 10.0F,
                    .calls = own + others,
                    .calls_elsewhere = others,
                    .gateways = static_cast<std::uint32_t>(below(3)),
                    .tokens = below(4)};
    if (below(2) == 0) load.adapters = {"pirate@1"};
    set_.report(*replica, load, now_);
  }
  void change_routes() {
    replicas_.clear();
    const auto n = below(8);
    for (std::size_t i = 0; i < n; ++i) {
      const auto state = below(4) == 0 ? ReplicaState::kStarting : ReplicaState::kReady;
      replicas_.push_back(replica("r" + std::to_string(below(8)), "mini", state));
      if (below(6) == 0) replicas_.back().address = "elsewhere:1";
    }
    route_.limits.max_ongoing = static_cast<std::uint32_t>(below(4));
    route_.selection_policy = kPolicies[below(std::size(kPolicies))];
    follow();
  }
  void judge() {
    const auto replica = any();
    if (!replica) return;
    switch (below(4)) {
      case 0:
        return set_.note_success(*replica, now_);
      case 1:
        return set_.note_back(*replica, now_);
      default:
        set_.note_failure(*replica, static_cast<Failure>(below(5)), now_);
    }
  }
  void check() {
    Counts counted;
    std::uint32_t callable = 0;
    std::uint32_t spare = 0;
    bool sound = false;
    for (const auto& replica : set_.replicas()) {
      const Standing& standing = replica->standing();
      counted.ready += standing.ready ? 1 : 0;
      counted.starting += standing.starting ? 1 : 0;
      counted.under_pressure += standing.pressured ? 1 : 0;
      callable += standing.callable ? 1 : 0;
      spare += standing.spare ? 1 : 0;
      sound = sound || standing.sound;
    }
    counted.with_room = sound ? callable : spare;
    EXPECT_EQ(set_.counts().ready, counted.ready);
    EXPECT_EQ(set_.counts().with_room, counted.with_room);
    EXPECT_EQ(set_.counts().starting, counted.starting);
    EXPECT_EQ(set_.counts().under_pressure, counted.under_pressure);
    for (const auto& [replica, calls] : expected_) EXPECT_EQ(replica->in_flight(), calls);
  }

  Random random_{GetParam()};
  std::vector<std::shared_ptr<Replica>> calls_;
  std::map<Replica*, std::uint32_t> expected_;
  std::vector<std::shared_ptr<Replica>> known_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Properties, testing::Range<std::uint64_t>(1, 21));

TEST_P(Properties, CountsAreRightAfterAnyOrderOfEvents) {
  for (int step = 0; step < 3000 && !HasFailure(); ++step) {
    for (const auto& replica : set_.replicas()) {
      if (!expected_.contains(replica.get())) known_.push_back(replica);
      expected_.try_emplace(replica.get(), replica->in_flight());
    }
    const auto what = below(100);
    if (what < 40) {
      send();
    } else if (what < 75) {
      end();
    } else if (what < 88) {
      tell();
    } else if (what < 96) {
      judge();
    } else if (what < 98) {
      change_routes();
    } else {
      pass(milliseconds(below(3000)));
      set_.advance(now_);
    }
    check();
  }
  while (!calls_.empty()) end();
  check();
  for (const auto& [replica, calls] : expected_) EXPECT_EQ(replica->in_flight(), 0U);
}

TEST_P(Properties, WhoeverHasRoomIsFound) {
  for (int step = 0; step < 500 && !HasFailure(); ++step) {
    const auto what = below(10);
    if (what < 4) {
      send();
    } else if (what < 6) {
      end();
    } else if (what < 9) {
      tell();
    } else {
      change_routes();
    }
    const bool room = set_.counts().with_room > 0;
    const auto replica = reserve({.session = 1});
    EXPECT_EQ(replica != nullptr, room);
    if (replica) set_.release(*replica, now_);
  }
}

}  // namespace
}  // namespace penstock::routing
