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

void LoadBoard::set(const v1::Load& load) {
  std::string bytes = load.SerializeAsString();
  {
    std::lock_guard lock(mutex_);
    if (bytes == set_bytes_) return;
    set_ = load;
    set_bytes_ = std::move(bytes);
    note_change();
  }
  wake_.notify_one();
}

void LoadBoard::changed() {
  changed_at_ = Clock::now();
  if (dirty_) return;
  {
    std::lock_guard lock(mutex_);
    note_change();
  }
  wake_.notify_one();
}

void LoadBoard::note_change() {
  const auto now = Clock::now();
  changed_at_ = now;
  if (dirty_.exchange(true)) return;
  next_look_ = std::max(looked_ + kLeast, now + kPatience);
}

bool LoadBoard::is_due(Clock::time_point told) const {
  return told < changed_at_.load() && Clock::now() - told >= kLeast;
}

void LoadBoard::enter(const std::shared_ptr<LoadWatcher>& watcher) {
  {
    std::lock_guard lock(mutex_);
    watchers_.insert(watcher);
  }
  wake_.notify_one();
  watcher->note_told(Clock::now());
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
    if (Clock::now() < next_look_) {
      wake_.wait_until(lock, next_look_);
      continue;
    }
    look(lock);
  }
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
  const auto as_of = Clock::now();
  const auto changed = changed_at_.load();
  Watchers due;
  bool later = false;
  for (const auto& watcher : watchers) {
    if (!all && watcher->told() >= changed) continue;
    const bool just_told = as_of - watcher->told() < kLeast;
    later = later || just_told;
    if (!just_told) due.push_back(watcher);
  }
  if (due.empty()) return !later;
  const v1::Load now = load();
  for (const auto& watcher : due) {
    watcher->note_told(as_of);
    watcher->publish(now);
  }
  return !later;
}

}  // namespace penstock::replica
