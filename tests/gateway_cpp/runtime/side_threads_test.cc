#include "runtime/side_threads.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace penstock::runtime {
namespace {

TEST(SideThreads, DoTheSmallestFirst) {
  std::string done;
  std::promise<void> begun;
  std::promise<void> go_on;
  std::promise<void> last;
  {
    SideThreads threads(1);
    threads.add(1, [&] {
      begun.set_value();
      go_on.get_future().wait();
    });
    begun.get_future().wait();
    threads.add(300, [&] {
      done += "c";
      last.set_value();
    });
    threads.add(100, [&] { done += "a"; });
    threads.add(200, [&] { done += "b"; });
    go_on.set_value();
    last.get_future().wait();
  }
  EXPECT_EQ(done, "abc");
}

TEST(SideThreads, DoALargeOneThoughSmallerOnesKeepComing) {
  int before = 0;
  std::promise<void> large;
  std::promise<void> go_on;
  bool over = false;
  SideThreads threads(1);
  threads.add(1, [gate = go_on.get_future().share()] { gate.wait(); });
  threads.add(1'000, [&] {
    over = true;
    large.set_value();
  });
  const std::function<void()> small = [&] {
    if (over || ++before == 1'000) return;
    threads.add(100, small);
  };
  threads.add(100, small);
  go_on.set_value();
  large.get_future().wait();
  EXPECT_GT(before, 10) << "the smallest first";
  EXPECT_LT(before, 100);
}

TEST(SideThreads, WaitAtTheEndForWhatHasBegun) {
  std::promise<void> begun;
  std::promise<void> go_on;
  bool done = false;
  std::future<void> end;
  {
    auto threads = std::make_unique<SideThreads>(2);
    threads->add(1, [&] {
      begun.set_value();
      go_on.get_future().wait();
      done = true;
    });
    begun.get_future().wait();
    end = std::async(std::launch::async, [ends = std::move(threads)]() mutable { ends.reset(); });
  }
  go_on.set_value();
  end.get();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace penstock::runtime
