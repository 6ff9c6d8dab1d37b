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

}  // namespace
}  // namespace penstock::runtime
