// What holds of the queue whatever comes, and what a flood does to others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "admission/fair_queue.h"
#include "admission/queue_simulation.h"

namespace penstock::admission {
namespace {

using base::Priority;

// Does at random whatever an owner may do, and keeps a plain account of who waits beside the queue.
class AnyOrder {
 public:
  explicit AnyOrder(std::uint64_t seed) : random_(seed) {}

  void step() {
    switch (pick(8)) {
      case 0:
      case 1:
      case 2:
        push();
        break;
      case 3:
      case 4:
        start();
        break;
      case 5:
        if (QueueEntry* entry = any_waiting()) leave(*entry);
        break;
      case 6:
        settle();
        break;
      default:
        queue_.charge(tenant(), priority(), pick(2000));
    }
  }

  void expect_right_sums() {
    ASSERT_EQ(queue_.size(), waiting_.size());
    ASSERT_EQ(queue_.next(kAny) == nullptr, waiting_.empty());
    std::uint64_t work = 0;
    for (const QueueEntry* entry : waiting_) work += entry->work;
    for (const Priority priority : {Priority::kLow, Priority::kNormal, Priority::kHigh}) {
      ASSERT_LE(queue_.work_before("t1", priority), 8 * work);
    }
  }

  // Everyone that waits comes out, first come first served within tenant and priority.
  void expect_all_come_out() {
    std::map<std::pair<std::string, Priority>, std::uint64_t> last;
    while (QueueEntry* entry = queue_.next(kAny)) {
      std::uint64_t& before = last[{entry->tenant, entry->priority}];
      ASSERT_LT(before, numbers_.at(entry)) << "one of " << entry->tenant << " overtook another";
      before = numbers_.at(entry);
      leave(*entry);
    }
    ASSERT_TRUE(waiting_.empty());
    ASSERT_EQ(queue_.work_before("t1", Priority::kNormal), 0U);
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  std::string tenant() { return "t" + std::to_string(pick(5)); }
  Priority priority() { return static_cast<Priority>(pick(3)); }

  QueueEntry* any_waiting() {
    if (waiting_.empty()) return nullptr;
    return *std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(pick(waiting_.size())));
  }

  void push() {
    QueueEntry& entry = entries_.emplace_back();
    entry.tenant = tenant();
    entry.priority = priority();
    entry.work = pick(1000);  // 0 counts as 1
    queue_.push(entry);
    numbers_[&entry] = ++number_;
    waiting_.insert(&entry);
  }

  void start() {
    QueueEntry* entry = pick(3) == 0 ? any_waiting() : queue_.next(kAny);
    if (entry == nullptr) return;
    queue_.start(*entry);
    waiting_.erase(entry);
    running_.push_back(entry);
  }

  void leave(QueueEntry& entry) {
    queue_.remove(entry);
    waiting_.erase(&entry);
  }

  void settle() {
    if (running_.empty()) return;
    const QueueEntry& entry = *running_.front();
    queue_.settle(entry.tenant, entry.priority, entry.charged, pick(3000));
    running_.pop_front();
  }

  std::mt19937_64 random_;
  std::deque<QueueEntry> entries_;
  std::set<QueueEntry*> waiting_;
  std::deque<QueueEntry*> running_;
  std::map<const QueueEntry*, std::uint64_t> numbers_;  // order in the line
  std::uint64_t number_ = 0;
  FairQueue queue_;
};

TEST(Fairness, SumsAreRightAfterAnyOrderOfWhatMayHappen) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    AnyOrder owner(seed);
    for (int step = 0; step < 500; ++step) {
      owner.step();
      owner.expect_right_sums();
      if (testing::Test::HasFatalFailure()) return;
    }
    owner.expect_all_come_out();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Fairness, NextGivesTheVeryOrderOfStarts) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::deque<QueueEntry> entries;
    FairQueue queue;
    for (int i = 0; i < 12; ++i) {
      QueueEntry& entry = entries.emplace_back();
      entry.tenant = "t" + std::to_string(random() % 4);
      entry.work = 1 + random() % 500;
      queue.push(entry);
    }
    std::vector<const QueueEntry*> foreseen;
    queue.next([&foreseen](const QueueEntry& entry) {
      foreseen.push_back(&entry);
      return false;
    });
    for (const QueueEntry* expected : foreseen) {
      QueueEntry* entry = queue.next(kAny);
      ASSERT_EQ(entry, expected);
      queue.start(*entry);
    }
  }
}

// Of requests of `tenant` that came from `from` on: seconds that they waited, sorted.
std::vector<double> waits_of(const QueueSimulation& simulation, const std::string& tenant,
                             double from = 0) {
  std::vector<double> waits;
  for (const auto& request : simulation.requests()) {
    if (request->entry.tenant != tenant || request->arrived < from) continue;
    waits.push_back(request->started < 0 ? 1e9 : request->waited());
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

double p99(const std::vector<double>& waits) { return waits[waits.size() * 99 / 100]; }

// A tenant that comes steadily, with a fifth of what 8 places can do, on so many places and beside
// so many floods whose requests each take `flood_seconds`.
double steady_p99(std::size_t places, int floods, double flood_seconds) {
  std::mt19937_64 random(11);
  QueueSimulation simulation(places, [](std::size_t) { return 1000.0; });
  double time = 0;
  for (int i = 0; i < 2000; ++i) {
    time += std::exponential_distribution<>(1.6)(random);
    const double work = std::uniform_real_distribution<>(500, 1500)(random);
    simulation.arrive(time, "steady", Priority::kNormal, 1000, work);
  }
  for (int flood = 0; flood < floods; ++flood) {
    const std::string tenant = "flood" + std::to_string(flood);
    const double mean = 1000 * flood_seconds;
    for (int i = 0; i < 4000; ++i) {
      const double work = mean * std::uniform_real_distribution<>(0.5, 1.5)(random);
      simulation.arrive(0.001 * i, tenant, Priority::kNormal, static_cast<std::uint64_t>(mean),
                        work);
    }
  }
  simulation.run();
  return p99(waits_of(simulation, "steady"));
}

TEST(Fairness, BesideFloodsATenantWaitsAsWithItsShareOfThePlacesForItself) {
  // A place that the tenant leaves for a moment is taken for as long as a request of a flood takes.
  EXPECT_LT(steady_p99(8, 1, 1), steady_p99(4, 0, 1) + 1);
  EXPECT_LT(steady_p99(8, 3, 1), steady_p99(2, 0, 1) + 1);
  EXPECT_LT(steady_p99(8, 1, 8), steady_p99(4, 0, 1) + 8);
  EXPECT_LT(steady_p99(8, 1, 0.1), steady_p99(4, 0, 1) + 0.1);
}

TEST(Fairness, NoTenantStarves) {
  std::mt19937_64 random(5);
  QueueSimulation simulation(4, [](std::size_t) { return 1000.0; });
  for (int tenant = 0; tenant < 20; ++tenant) {
    // From one request now and then to a hundred times what there is room for.
    double time = 0;
    const double rate = 0.05 * std::pow(1.7, tenant);
    for (int i = 0; i < 300 && time < 200; ++i) {
      time += std::exponential_distribution<>(rate)(random);
      const double work = std::exponential_distribution<>(0.001)(random);
      simulation.arrive(time, "t" + std::to_string(tenant), Priority::kNormal, 1000, work);
    }
  }
  simulation.run(200);
  for (int tenant = 0; tenant < 3; ++tenant) {
    // Those that ask for less than their twentieth wait for a turn of each other at most.
    const auto waits = waits_of(simulation, "t" + std::to_string(tenant));
    ASSERT_FALSE(waits.empty());
    EXPECT_LT(waits[waits.size() / 2], 20 * 1.0 / 4 * 2) << tenant;
  }
}

TEST(Fairness, FloodsOfAllSizesGetTheSameWork) {
  std::mt19937_64 random(3);
  QueueSimulation simulation(8, [](std::size_t) { return 1000.0; });
  const std::map<std::string, double> sizes = {{"a", 100}, {"b", 1000}, {"c", 4000}};
  for (const auto& [tenant, size] : sizes) {
    for (int i = 0; i < 8000; ++i) {
      const double work = size * std::exponential_distribution<>(1)(random);
      // All are estimated alike: what evens them out is the settling.
      simulation.arrive(0.0001 * i, tenant, Priority::kNormal, 1000, work);
    }
  }
  simulation.run(200);
  std::map<std::string, double> done;
  for (const auto& request : simulation.requests()) {
    if (request->ended >= 0) done[request->entry.tenant] += request->true_work;
  }
  const double all = done["a"] + done["b"] + done["c"];
  for (const auto& [tenant, work] : done) EXPECT_NEAR(work / all, 1.0 / 3, 0.04) << tenant;
}

TEST(Fairness, LowKeepsATenthThroughAFloodOfHigh) {
  QueueSimulation simulation(8, [](std::size_t) { return 1000.0; });
  for (int i = 0; i < 3000; ++i) {
    simulation.arrive(0.001, "h", Priority::kHigh, 1000, 1000);
    simulation.arrive(0.001, "n", Priority::kNormal, 1000, 1000);
    simulation.arrive(0.001, "l", Priority::kLow, 2000, 2000);
  }
  simulation.run(200);
  std::map<std::string, double> done;
  for (const auto& request : simulation.requests()) {
    if (request->ended >= 0) done[request->entry.tenant] += request->true_work;
  }
  EXPECT_NEAR(done["l"] / (done["l"] + done["h"] + done["n"]), 0.1, 0.02);
  EXPECT_LT(done["n"], 8 * 1000 + 1) << "high has all the rest, but for the first places";
}

}  // namespace
}  // namespace penstock::admission
