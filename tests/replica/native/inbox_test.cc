#include "inbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>
#include <vector>

namespace penstock::replica {
namespace {

bool readable(const Inbox& inbox) {
  pollfd fd{.fd = inbox.fd(), .events = POLLIN, .revents = 0};
  return poll(&fd, 1, 0) == 1;
}

TEST(Inbox, IsReadableFromTheFirstItemUntilItIsDrained) {
  Inbox inbox;
  EXPECT_FALSE(readable(inbox));
  inbox.post(Inbox::Kind::kStart, 1, "a");
  inbox.post(Inbox::Kind::kCancel, 1);
  EXPECT_TRUE(readable(inbox));
  const auto items = inbox.drain();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].payload, "a");
  EXPECT_EQ(items[1].kind, Inbox::Kind::kCancel);
  EXPECT_FALSE(readable(inbox));
}

TEST(Inbox, LosesNothingThatThreadsPostWhileItIsDrained) {
  Inbox inbox;
  constexpr uint64_t kEach = 2000;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (uint64_t key = 0; key < kEach; ++key) inbox.post(Inbox::Kind::kRoom, key);
    });
  }
  size_t seen = 0;
  while (seen < 3 * kEach) {
    pollfd fd{.fd = inbox.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(poll(&fd, 1, 10'000), 1) << "items wait, but nobody was told";
    seen += inbox.drain().size();
  }
  EXPECT_EQ(seen, 3 * kEach);
}

}  // namespace
}  // namespace penstock::replica
