// The replica's load, told to whoever watches it: when it changed, and each second. Owned by the
// server; any thread may call anything.
//
// Who is sent events anyway takes a changed load along with them, which costs next to nothing: a
// message of its own wakes the gateway once more for each step of an engine. A thread of the
// board's own tells the others a moment later, so that a hundred changes are one message, and
// whoever made them waits for nobody. The figures are read when they are told.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class LoadWatcher {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~LoadWatcher() = default;
  // The load is to be told, soon: as `LoadBoard::load_for` reads it then, each after the last.
  virtual void tell() = 0;

 private:
  friend class LoadBoard;
  std::atomic<Clock::time_point> told_{Clock::time_point()};  // last
  std::atomic<uint64_t> heard_{0};  // which of the board's changes it has been told of
};

class LoadBoard {
 public:
  using Clock = LoadWatcher::Clock;

  // Between two messages to the same watcher, apart from its first and last. Engines' steps of 20
  // ms are told each, however unevenly they come.
  static constexpr std::chrono::milliseconds kLeast{15};
  // How long a change waits for events that take it along.
  static constexpr std::chrono::milliseconds kPatience{5};
  // Without a change, watchers hear the same again after this time.
  static constexpr std::chrono::milliseconds kRepeat{900};

  // `fill` adds the figures of the moment to what was `set`; called from any thread.
  explicit LoadBoard(std::function<void(v1::Load*)> fill);
  ~LoadBoard() { stop(); }
  LoadBoard(const LoadBoard&) = delete;
  LoadBoard& operator=(const LoadBoard&) = delete;

  // The load of this moment; it lacks what differs from watcher to watcher: the counts of calls.
  v1::Load load() const;
  // The same for a watcher that is told it now.
  v1::Load load_for(LoadWatcher& watcher) const;
  void set(const v1::Load& load);
  // Figures that `fill` adds have changed, or change under a lock that `fill` waits for.
  void changed();
  // Whether the watcher may be told again, and there is something to tell.
  bool is_due(const LoadWatcher& watcher) const;
  void enter(const std::shared_ptr<LoadWatcher>& watcher);
  void leave(const std::shared_ptr<LoadWatcher>& watcher);
  // Tells what has changed and is not told yet, and nothing more.
  void stop();

 private:
  using Watchers = std::vector<std::shared_ptr<LoadWatcher>>;
  void note_change();
  void run();
  void look(std::unique_lock<std::mutex>& lock);
  bool tell(const Watchers& watchers, bool all);

  const std::function<void(v1::Load*)> fill_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  v1::Load set_;
  std::string set_bytes_;  // the same, to see what is no change
  std::unordered_set<std::shared_ptr<LoadWatcher>> watchers_;
  Clock::time_point looked_;
  Clock::time_point next_look_;
  std::atomic<bool> dirty_{false};    // set under the mutex
  std::atomic<uint64_t> changes_{0};  // so far
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace penstock::replica
