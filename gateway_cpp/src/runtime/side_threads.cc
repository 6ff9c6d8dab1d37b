#include "runtime/side_threads.h"

#include <utility>

namespace penstock::runtime {

namespace {

// How many times its own bytes go before it, of smaller work that comes after it.
constexpr uint64_t kGivesWayFor = 4;

}  // namespace

SideThreads::~SideThreads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SideThreads::add(size_t bytes, Work work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(begun_ + kGivesWayFor * bytes, Waiting{bytes, std::move(work)});
    while (threads_.size() < wanted_) threads_.emplace_back([this] { run(); });
  }
  changed_.notify_one();
}

void SideThreads::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    auto next = waiting_.extract(waiting_.begin());
    begun_ += next.mapped().bytes;
    lock.unlock();
    next.mapped().work();
    next = {};  // what it holds goes here, and not under the lock
    lock.lock();
  }
}

}  // namespace penstock::runtime
