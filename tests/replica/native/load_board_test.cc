// Whom the load board tells and when, without sessions: watchers that are threads' own.
#include "load_board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::replica {
namespace {

using std::chrono::milliseconds;

// Reads the load when it is told to, as sessions do.
class Watcher final : public LoadWatcher {
 public:
  explicit Watcher(const LoadBoard& board) : board_(board) {}

  void tell() override { hear(); }
  // What a session does that sends events anyway.
  void pass() {
    if (board_.is_due(*this)) hear();
  }
  std::vector<uint64_t> heard() const {
    std::lock_guard lock(mutex_);
    return heard_;
  }
  bool hears(uint64_t steps, milliseconds within) const {
    const auto deadline = LoadBoard::Clock::now() + within;
    while (LoadBoard::Clock::now() < deadline) {
      const std::vector<uint64_t> all = heard();
      if (!all.empty() && all.back() == steps) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  void hear() {
    std::lock_guard lock(mutex_);
    heard_.push_back(board_.load_for(*this).steps());
  }

  const LoadBoard& board_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> heard_;
};

class LoadBoardTest : public testing::Test {
 protected:
  void step() {
    ++steps_;
    board_.changed();
  }
  std::shared_ptr<Watcher> enter() {
    const auto watcher = std::make_shared<Watcher>(board_);
    board_.enter(watcher);
    return watcher;
  }

  std::atomic<uint64_t> steps_{0};
  LoadBoard board_{[this](v1::Load* load) { load->set_steps(steps_); }};
};

TEST_F(LoadBoardTest, WhoeverEntersHearsTheLoadAtOnce) {
  steps_ = 7;
  EXPECT_EQ(enter()->heard(), std::vector<uint64_t>{7});
}

TEST_F(LoadBoardTest, WhoWasToldIsNotDueUntilSomethingChangesAndThenNotAtOnce) {
  const auto watcher = std::make_shared<Watcher>(board_);
  EXPECT_FALSE(board_.is_due(*watcher)) << "nothing has changed";
  step();
  EXPECT_TRUE(board_.is_due(*watcher));
  board_.load_for(*watcher);
  EXPECT_FALSE(board_.is_due(*watcher));
  const auto told = LoadBoard::Clock::now();
  step();
  while (!board_.is_due(*watcher)) std::this_thread::yield();
  EXPECT_GE(LoadBoard::Clock::now() - told, LoadBoard::kLeast - milliseconds(1));
}

TEST_F(LoadBoardTest, TheLastOfManyChangesIsToldSoonAndNoneIsOlderThanTheOneBefore) {
  const auto idle = enter();
  const auto busy = enter();
  for (int round = 0; round < 20; ++round) {
    std::thread other([this] {
      for (int i = 0; i < 500; ++i) step();
    });
    for (int i = 0; i < 500; ++i) {
      step();
      busy->pass();
    }
    other.join();
    EXPECT_TRUE(idle->hears(steps_, LoadBoard::kRepeat / 2)) << "round " << round;
    EXPECT_TRUE(busy->hears(steps_, LoadBoard::kRepeat / 2)) << "round " << round;
  }
  for (const auto& watcher : {idle, busy}) {
    const std::vector<uint64_t> heard = watcher->heard();
    EXPECT_TRUE(std::ranges::is_sorted(heard));
  }
}

TEST_F(LoadBoardTest, WhatHasChangedIsToldBeforeTheBoardStops) {
  const auto watcher = enter();
  step();
  board_.stop();
  EXPECT_EQ(watcher->heard().back(), steps_);
  const size_t told = watcher->heard().size();
  step();
  EXPECT_EQ(watcher->heard().size(), told) << "nobody tells it any more";
}

}  // namespace
}  // namespace penstock::replica
