#include "runtime/signal.h"

#include <gtest/gtest.h>

#include "event_loop.h"

namespace penstock::runtime {
namespace {

Awaitable<void> raise_other(Signal& mine, Signal& other, int& woken) {
  co_await mine.wait();
  ++woken;
  other.raise();
}

TEST(Signal, RemembersARaiseThatNobodyWaitedFor) {
  test::EventLoop loop;
  Signal first;
  Signal second;
  int woken = 0;
  first.raise();
  first.raise();
  loop.spawn(raise_other(first, second, woken));
  loop.spawn(raise_other(second, first, woken));
  EXPECT_TRUE(loop.run_until([&] { return woken == 2; }));
}

// Reads what it is allowed to.
class CountingReader final : public Signal::Reader {
 public:
  bool read() noexcept override {
    ++asked;
    return reads;
  }

  bool reads = true;
  int asked = 0;
};

Awaitable<void> wait_twice(Signal& signal, CountingReader& reader, int& woken) {
  co_await signal.wait(reader);
  ++woken;
  co_await signal.wait();
  ++woken;
}

class SignalReaderTest : public testing::Test {
 protected:
  void start() {
    loop_.spawn(wait_twice(signal_, reader_, woken_));
    loop_.poll();
  }
  ~SignalReaderTest() override {
    reader_.reads = false;
    for (int i = 0; i < 2; ++i) signal_.raise();
    loop_.poll();
  }

  test::EventLoop loop_;
  Signal signal_;
  CountingReader reader_;
  int woken_ = 0;
};

TEST_F(SignalReaderTest, LetsTheWaiterSleepForAsLongAsTheReaderCanDealWithTheNews) {
  start();
  signal_.raise();
  signal_.raise();
  EXPECT_EQ(reader_.asked, 2);
  EXPECT_EQ(woken_, 0);
}

TEST_F(SignalReaderTest, ResumesTheWaiterWithNewsThatTheReaderLeavesToIt) {
  start();
  reader_.reads = false;
  signal_.raise();
  EXPECT_EQ(woken_, 1);
}

TEST_F(SignalReaderTest, DoesNotAskTheReaderOnceItsWaitIsOver) {
  start();
  reader_.reads = false;
  signal_.raise();
  reader_.reads = true;
  signal_.raise();
  EXPECT_EQ(reader_.asked, 1);
  EXPECT_EQ(woken_, 2);
}

TEST_F(SignalReaderTest, LeavesARaiseBeforeTheWaitToTheWaiter) {
  signal_.raise();
  start();
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(reader_.asked, 0);
}

}  // namespace
}  // namespace penstock::runtime
