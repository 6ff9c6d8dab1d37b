// The replica's load, told to whoever watches it: at once, when it changed, and each second. Owned
// by the server; any thread may call anything.
//
// A thread of the board's own tells of changes, so that a hundred changes within a moment are one
// message, and whoever made them waits for nobody. It reads the figures when it tells them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>

#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class LoadWatcher {
 public:
  virtual ~LoadWatcher() = default;
  // `load` lacks what differs from watcher to watcher: the counts of calls.
  virtual void publish(const v1::Load& load) = 0;
};

class LoadBoard {
 public:
  // Between two messages to the same watcher, apart from its first.
  static constexpr std::chrono::milliseconds kLeast{20};
  // Without a change, watchers hear the same again after this time.
  static constexpr std::chrono::milliseconds kRepeat{900};

  // `fill` adds the figures of the moment to what was `set`; called from any thread.
  explicit LoadBoard(std::function<void(v1::Load*)> fill);
  ~LoadBoard() { stop(); }
  LoadBoard(const LoadBoard&) = delete;
  LoadBoard& operator=(const LoadBoard&) = delete;

  // The load of this moment.
  v1::Load load() const;
  void set(const v1::Load& load);
  // Figures that `fill` adds have changed.
  void changed();
  void enter(const std::shared_ptr<LoadWatcher>& watcher);
  void leave(const std::shared_ptr<LoadWatcher>& watcher);
  // Tells nothing more.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void run();

  const std::function<void(v1::Load*)> fill_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  v1::Load set_;
  std::string set_bytes_;  // the same, to see what is no change
  std::unordered_set<std::shared_ptr<LoadWatcher>> watchers_;
  Clock::time_point published_;
  std::atomic<bool> dirty_{false};  // set under the mutex
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock::replica
