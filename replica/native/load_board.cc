#include "load_board.h"

#include <algorithm>
#include <utility>

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

v1::Load LoadBoard::load_for(LoadWatcher& watcher) const {
  // What changes while the figures are read is told again.
  watcher.heard_ = changes_.load();
  watcher.told_ = Clock::now();
  return load();
}

void LoadBoard::set(const v1::Load& load) {
  std::string bytes = load.SerializeAsString();
  {
    std::lock_guard lock(mutex_);
    if (bytes == set_bytes_) return;
    set_ = load;
    set_bytes_ = std::move(bytes);
    ++changes_;
    note_change();
  }
  wake_.notify_one();
}

void LoadBoard::changed() {
  ++changes_;
  if (dirty_) return;
  {
    std::lock_guard lock(mutex_);
    note_change();
  }
  wake_.notify_one();
}

void LoadBoard::note_change() {
  if (dirty_.exchange(true)) return;
  next_look_ = std::max(looked_ + kLeast, Clock::now() + kPatience);
}

bool LoadBoard::is_due(const LoadWatcher& watcher) const {
  return watcher.heard_ < changes_ && Clock::now() - watcher.told_.load() >= kLeast;
}

void LoadBoard::enter(const std::shared_ptr<LoadWatcher>& watcher) {
  watcher->tell();
  {
    std::lock_guard lock(mutex_);
    watchers_.insert(watcher);
    if (watcher->heard_ < changes_) note_change();
  }
  wake_.notify_one();
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
    if (Clock::now() < next_look_) {
      wake_.wait_until(lock, next_look_);
      continue;
    }
    look(lock);
  }
  if (!dirty_) return;
  const Watchers watchers(watchers_.begin(), watchers_.end());
  lock.unlock();
  for (const auto& watcher : watchers) watcher->tell();
}

void LoadBoard::look(std::unique_lock<std::mutex>& lock) {
  const bool all = !dirty_.exchange(false);
  looked_ = Clock::now();
  next_look_ = looked_ + kRepeat;
  const Watchers watchers(watchers_.begin(), watchers_.end());
  lock.unlock();
  const bool told = tell(watchers, all);
  lock.lock();
  if (told || dirty_) return;
  dirty_ = true;
  next_look_ = looked_ + kLeast;
}

// False: some are to be told later, since they were told just now.
bool LoadBoard::tell(const Watchers& watchers, bool all) {
  const auto now = Clock::now();
  const uint64_t changes = changes_;
  bool later = false;
  for (const auto& watcher : watchers) {
    const bool has_news = watcher->heard_ < changes;
    if (!all && !has_news) continue;
    if (now - watcher->told_.load() < kLeast) {
      later = later || has_news;
    } else {
      watcher->tell();
    }
  }
  return !later;
}

}  // namespace penstock::replica
