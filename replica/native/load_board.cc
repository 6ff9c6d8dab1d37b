#include "load_board.h"

#include <utility>
#include <vector>

namespace penstock::replica {

LoadBoard::LoadBoard(std::function<void(v1::Load*)> fill)
    : fill_(std::move(fill)), thread_([this] { run(); }) {}

v1::Load LoadBoard::load() const {
  v1::Load now;
  {
    std::lock_guard lock(mutex_);
    now = set_;
  }
  fill_(&now);
  return now;
}

void LoadBoard::set(const v1::Load& load) {
  std::string bytes = load.SerializeAsString();
  {
    std::lock_guard lock(mutex_);
    if (bytes == set_bytes_) return;
    set_ = load;
    set_bytes_ = std::move(bytes);
    dirty_ = true;
  }
  wake_.notify_one();
}

void LoadBoard::changed() {
  if (dirty_) return;
  {
    std::lock_guard lock(mutex_);
    dirty_ = true;
  }
  wake_.notify_one();
}

void LoadBoard::enter(const std::shared_ptr<LoadWatcher>& watcher) {
  {
    std::lock_guard lock(mutex_);
    watchers_.insert(watcher);
  }
  wake_.notify_one();
  watcher->publish(load());
}

void LoadBoard::leave(const std::shared_ptr<LoadWatcher>& watcher) {
  std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

void LoadBoard::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LoadBoard::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watchers_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto due = published_ + (dirty_ ? kLeast : kRepeat);
    if (Clock::now() < due) {
      wake_.wait_until(lock, due);
      continue;
    }
    dirty_ = false;
    published_ = Clock::now();
    const std::vector<std::shared_ptr<LoadWatcher>> watchers(watchers_.begin(), watchers_.end());
    lock.unlock();
    const v1::Load now = load();
    for (const auto& watcher : watchers) watcher->publish(now);
    lock.lock();
  }
}

}  // namespace penstock::replica
