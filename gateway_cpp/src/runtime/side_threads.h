// Threads for what would hold up every client of an I/O thread: reading and hashing large bodies.
// The smallest work goes first, so that a few huge bodies do not hold up all others; a huge one has
// its turn when the work that has gone before it is a few times its own. What waits is bounded by
// the budget for bodies, of which each holds its share.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::runtime {

// Owned by main; any thread. It goes before the event loops that its work posts to.
class SideThreads {
 public:
  using Work = std::function<void()>;

  // They start with the first work: a gateway without large bodies has none of them.
  explicit SideThreads(unsigned threads) : wanted_(threads) {}
  SideThreads(const SideThreads&) = delete;
  SideThreads& operator=(const SideThreads&) = delete;
  // Work that has begun is finished, what waits is dropped.
  ~SideThreads();

  // Must not throw. `bytes`: how much work it is.
  void add(size_t bytes, Work work);

 private:
  void run();

  const unsigned wanted_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  struct Waiting {
    size_t bytes;
    Work work;
  };
  uint64_t begun_ = 0;                        // bytes of work, ever
  std::multimap<uint64_t, Waiting> waiting_;  // by when it is due, in bytes of work begun
  std::vector<std::thread> threads_;
  bool ends_ = false;
};

}  // namespace penstock::runtime
