// The policies that send alike to alike: session and prefix_aware.
#include <cmath>
#include <map>
#include <set>

#include "routing/hashing.h"
#include "set_fixture.h"

namespace penstock::routing {
namespace {

class Sticky : public SetFixture {
 protected:
  void use(const std::string& policy, std::size_t replicas, std::uint32_t capacity = 64) {
    route_.selection_policy = policy;
    route_.limits.max_ongoing = capacity;
    follow(replicas);
  }
  std::map<std::uint64_t, std::string> owners(std::uint64_t sessions) {
    std::map<std::uint64_t, std::string> found;
    for (std::uint64_t session = 1; session <= sessions; ++session) {
      found[session] = asked({.session = session});
    }
    return found;
  }
  // The blocks of a text of which each part has its own number.
  static std::vector<std::uint64_t> blocks(std::initializer_list<std::uint64_t> parts) {
    std::vector<std::uint64_t> chain;
    std::uint64_t hash = 1;
    for (const std::uint64_t part : parts) chain.push_back(hash = mix(hash * 31 + part));
    return chain;
  }
  std::string asked_with(const std::vector<std::uint64_t>& prefix) {
    return asked({.prefix = prefix});
  }
};

TEST_F(Sticky, ASessionStaysWithOneReplica) {
  use("session", 10);
  const auto before = owners(200);
  EXPECT_EQ(owners(200), before);
  std::map<std::string, int> shares;
  for (const auto& [session, owner] : before) ++shares[owner];
  EXPECT_EQ(shares.size(), 10U);
  for (const auto& [owner, share] : shares) EXPECT_LT(share, 45) << owner;
}

TEST_F(Sticky, EveryGatewaySendsASessionToTheSameReplica) {
  use("session", 10);
  ReplicaSet other({"n", "z"}, 99);
  std::vector<ReplicaRoute> reversed(replicas_.rbegin(), replicas_.rend());
  other.follow(route_, reversed, now_);
  for (const auto& [session, owner] : owners(200)) {
    const auto replica = other.reserve({.session = session}, now_);
    EXPECT_EQ(replica->id().value, owner);
    other.release(*replica, now_);
  }
}

TEST_F(Sticky, WhoLeavesTakesItsOwnSessionsAndNoOthers) {
  use("session", 10);
  const auto before = owners(500);
  replicas_.erase(replicas_.begin() + 3);
  follow();
  for (const auto& [session, owner] : owners(500)) {
    if (before.at(session) != "r3") {
      EXPECT_EQ(owner, before.at(session));
    } else {
      EXPECT_NE(owner, "r3");
    }
  }
}

TEST_F(Sticky, WhoComesTakesSessionsOnlyForItself) {
  use("session", 10);
  const auto before = owners(500);
  use("session", 11);
  pass(seconds(10));
  set_.advance(now_);
  int moved = 0;
  for (const auto& [session, owner] : owners(500)) {
    if (owner == before.at(session)) continue;
    EXPECT_EQ(owner, "r10");
    ++moved;
  }
  EXPECT_GT(moved, 10);
  EXPECT_LT(moved, 120);
}

TEST_F(Sticky, ASessionComesBackToItsReplicaAfterADoubt) {
  use("session", 10);
  const std::string owner = asked({.session = 5});
  fail(owner, Failure::kLost);
  const std::string other = asked({.session = 5});
  EXPECT_NE(other, owner);
  EXPECT_EQ(asked({.session = 5}), other);
  set_.note_back(at(owner), now_);
  EXPECT_EQ(asked({.session = 5}), owner);
}

TEST_F(Sticky, OneSessionLoadsNoReplicaFarAboveTheOthers) {
  use("session", 10, 1000);
  for (int i = 0; i < 5000; ++i) reserve({.session = 5});
  for (const auto& replica : set_.replicas()) {
    EXPECT_LE(replica->in_flight(), std::ceil(1.25 * 5000 / 10));
  }
}

TEST_F(Sticky, TheLongestKnownPrefixDecides) {
  use("prefix_aware", 10);
  std::map<std::string, std::uint64_t> conversations;
  for (std::uint64_t user = 1; user <= 200; ++user) {
    const std::string first = asked_with(blocks({1000 + user, 1, user}));
    EXPECT_EQ(asked_with(blocks({1000 + user, 1, user, 7, 8, 9})), first);
    EXPECT_EQ(asked_with(blocks({1000 + user, 1, user, 7, 8, 9, 10, 11})), first);
    EXPECT_EQ(asked_with(blocks({1000 + user, 1})), first);
    ++conversations[first];
  }
  EXPECT_EQ(conversations.size(), 10U);
}

TEST_F(Sticky, WhatAllShareIsComputedOnAsFewReplicasAsItsLoadNeeds) {
  use("prefix_aware", 10);
  std::set<std::string> used;
  for (std::uint64_t user = 1; user <= 50; ++user) used.insert(asked_with(blocks({1, 2, 3, user})));
  EXPECT_EQ(used.size(), 1U);
  for (std::uint64_t user = 1; user <= 12; ++user) {
    const auto prefix = blocks({1, 2, 3, user});
    used.insert(chosen({.prefix = prefix}));
  }
  EXPECT_EQ(used.size(), 2U);
}

TEST_F(Sticky, OnePrefixLoadsNoReplicaFarAboveTheOthers) {
  use("prefix_aware", 10, 1000);
  const auto prefix = blocks({1, 2, 3});
  for (int i = 0; i < 5000; ++i) reserve({.prefix = prefix});
  for (const auto& replica : set_.replicas()) {
    EXPECT_LE(replica->in_flight(), std::ceil(1.25 * 5000 / 10));
  }
}

TEST_F(Sticky, EveryGatewayBeginsAPrefixAtTheSameReplica) {
  use("prefix_aware", 10);
  ReplicaSet other({}, 99);
  other.follow(route_, replicas_, now_);
  for (std::uint64_t text = 1; text <= 50; ++text) {
    const auto prefix = blocks({text, 1, 2});
    const auto replica = other.reserve({.prefix = prefix}, now_);
    EXPECT_EQ(replica->id().value, asked_with(prefix));
    other.release(*replica, now_);
  }
}

TEST_F(Sticky, AReplicaThatWasWokenHasForgottenItsPrefixes) {
  use("prefix_aware", 2);
  const auto prefix = blocks({1, 2, 3});
  const std::string first = asked_with(prefix);
  const auto busy = reserve({.prefix = prefix});  // whoever still has it has it to the end
  const std::uint32_t serial = at(first).serial();
  for (ReplicaRoute& route : replicas_) ++route.wakes;
  follow();
  EXPECT_NE(at(first).serial(), serial) << "what is known of prefixes is known by serials";
  EXPECT_EQ(at(first).in_flight(), 0U);
  set_.release(*busy, now_);
  EXPECT_EQ(set_.replicas().size(), 2U);
  const std::uint32_t woken = at(first).serial();
  follow();
  EXPECT_EQ(at(first).serial(), woken);
}

TEST_F(Sticky, APrefixOfAReplicaThatLeftBelongsToAnother) {
  use("prefix_aware", 10);
  const auto prefix = blocks({1, 2, 3});
  const std::string owner = asked_with(prefix);
  std::erase_if(replicas_, [&](const auto& replica) { return replica.id.value == owner; });
  follow();
  const std::string heir = asked_with(prefix);
  EXPECT_NE(heir, owner);
  EXPECT_NE(heir, "");
  EXPECT_EQ(asked_with(blocks({1, 2, 3, 4})), heir);
}

TEST_F(Sticky, WithoutWhatToStickToTheLoadDecides) {
  for (const char* policy : {"session", "prefix_aware"}) {
    use(policy, 2);
    report("r0", {.max_running = 64, .calls = 30, .calls_elsewhere = 30, .gateways = 1});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(asked(), "r1") << policy;
  }
}

}  // namespace
}  // namespace penstock::routing
