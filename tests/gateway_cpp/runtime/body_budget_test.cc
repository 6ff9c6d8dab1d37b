// Budgets for bodies, and who waits for room in one.
#include "runtime/body_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "event_loop.h"
#include "runtime/room_wait.h"

namespace penstock::runtime {
namespace {

// Takes so many bytes of a budget as soon as it may, and says so.
class Body {
 public:
  Body(BodyBudget& budget, size_t bytes, std::shared_ptr<BodyBudget> part = nullptr)
      : share_(budget, std::move(part)), bytes_(bytes) {}

  Awaitable<void> run(asio::io_context& io, std::string name, std::string& order) {
    {
      RoomWait wait(io.get_executor(), signal_);
      while (!left_ && !share_.grow_to(bytes_)) {
        ++tries_;
        if (!wait.must_try_again(share_)) co_await signal_.wait();
      }
    }
    if (!left_) order += name;
    done_ = true;
  }
  void leave() {
    left_ = true;
    signal_.raise();
  }
  void let_go() { share_.shrink_to(0); }
  bool done() const { return done_; }
  int tries() const { return tries_; }

 private:
  Signal signal_;
  BodyShare share_;
  const size_t bytes_;
  bool left_ = false;
  bool done_ = false;
  int tries_ = 0;
};

class BodyBudgetTest : public testing::Test {
 protected:
  void start(Body& body, const std::string& name) {
    loop_.spawn(body.run(loop_.io(), name, order_));
    loop_.poll();
  }
  void give_back(size_t bytes) {
    budget_.give_back(bytes);
    loop_.poll();
  }

  test::EventLoop loop_;
  BodyBudget budget_{100, 60};
  std::string order_;
};

TEST_F(BodyBudgetTest, WakesThoseWhoWaitInTheOrderInWhichTheyCame) {
  ASSERT_TRUE(budget_.take(100));
  Body a(budget_, 50);
  Body b(budget_, 50);
  Body c(budget_, 50);
  start(a, "a");
  start(b, "b");
  start(c, "c");
  give_back(50);
  EXPECT_EQ(order_, "a");
  give_back(50);
  EXPECT_EQ(order_, "ab");
  a.let_go();
  loop_.poll();
  EXPECT_EQ(order_, "abc");
}

TEST_F(BodyBudgetTest, LeavesThoseAsleepForWhomThereIsNoRoom) {
  ASSERT_TRUE(budget_.take(100));
  Body large(budget_, 80);
  Body small(budget_, 20);
  start(large, "l");
  start(small, "s");
  const int tries = large.tries();
  give_back(20);
  EXPECT_EQ(order_, "s") << "it need not wait for the larger one's room";
  EXPECT_EQ(large.tries(), tries);
  give_back(80);
  EXPECT_EQ(order_, "sl");
}

TEST_F(BodyBudgetTest, GivesWhatOneThatLeavesWasWokenForToTheNext) {
  ASSERT_TRUE(budget_.take(100));
  Body a(budget_, 50);
  Body b(budget_, 50);
  start(a, "a");
  start(b, "b");
  budget_.give_back(50);
  a.leave();
  loop_.poll();
  EXPECT_EQ(order_, "b");
  EXPECT_TRUE(a.done());
}

TEST_F(BodyBudgetTest, WakesTheNextWhereAPasserByLeftTooLittleForTheFirst) {
  ASSERT_TRUE(budget_.take(100));
  Body first(budget_, 80);
  Body second(budget_, 20);
  start(first, "1");
  start(second, "2");
  budget_.give_back(80);
  ASSERT_TRUE(budget_.take(60)) << "by one that did not wait";
  loop_.poll();
  EXPECT_EQ(order_, "2");
  give_back(80);
  EXPECT_EQ(order_, "21");
}

TEST_F(BodyBudgetTest, WakesWhoLacksItsOwnPartWhenThatComesBack) {
  const auto part = budget_.part_of("tenant");
  Body holds(budget_, 50, part);
  Body waits(budget_, 50, part);
  Body other(budget_, 50);
  start(holds, "h");
  start(waits, "w");
  start(other, "o");
  EXPECT_EQ(order_, "ho") << "its client's part is used up, and nobody else's";
  holds.let_go();
  loop_.poll();
  EXPECT_EQ(order_, "how");
}

TEST_F(BodyBudgetTest, FollowsWhoLacksItsPartAndThenTheWhole) {
  const auto part = budget_.part_of("tenant");
  Body holds(budget_, 50, part);
  Body waits(budget_, 50, part);
  start(holds, "h");
  start(waits, "w");
  ASSERT_TRUE(budget_.take(50));
  budget_.give_back(40);
  holds.let_go();
  ASSERT_TRUE(budget_.take(60));
  loop_.poll();
  EXPECT_EQ(order_, "h");
  give_back(50);
  EXPECT_EQ(order_, "hw");
}

TEST_F(BodyBudgetTest, HasNothingLeftWhereNobodyWaits) {
  {
    Body a(budget_, 50);
    ASSERT_TRUE(budget_.take(100));
    start(a, "a");
    a.leave();
    loop_.poll();
  }
  give_back(100);
  EXPECT_EQ(budget_.held(), 0U);
}

// Each gives back what it took at once, so that all get on as long as no wake is lost.
TEST_F(BodyBudgetTest, LosesNobodyOverManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 500;
  BodyBudget budget(100);
  std::atomic<int> done{0};
  const auto work = [&](size_t bytes) {
    test::EventLoop loop;
    for (int turn = 0; turn < kTurns; ++turn) {
      Body body(budget, bytes);
      std::string order;
      loop.spawn(body.run(loop.io(), "x", order));
      if (!loop.run_until([&] { return body.done(); })) return;
      ++done;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, 40 + 20 * (i % 2));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, kThreads * kTurns);
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace penstock::runtime
