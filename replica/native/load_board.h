// The replica's load as its watchers see it. Owned by the server; any thread may call anything.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "penstock/v1/inference.pb.h"

namespace penstock::replica {

class LoadWatch;

class LoadBoard {
 public:
  // Without a change, watchers hear the same again after this time.
  static constexpr std::chrono::milliseconds kRepeat{900};

  v1::Load load() const;
  // Publishes a load that differs from the last one, or that is due again.
  void set(const v1::Load& load, std::chrono::steady_clock::time_point now);

 private:
  friend class LoadWatch;
  void enter(const std::shared_ptr<LoadWatch>& watch);
  void leave(const std::shared_ptr<LoadWatch>& watch);

  mutable std::mutex mutex_;
  v1::Load load_;
  std::chrono::steady_clock::time_point published_;
  std::unordered_set<std::shared_ptr<LoadWatch>> watches_;
};

// One `Inference.WatchLoad`. A slow watcher skips loads, and gets the newest one next.
// Owned by itself until OnDone, and by the board while it is entered there.
class LoadWatch final : public grpc::ServerWriteReactor<v1::Load>,
                        public std::enable_shared_from_this<LoadWatch> {
 public:
  static LoadWatch* start(LoadBoard* board);

  void publish(const v1::Load& load);
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit LoadWatch(LoadBoard* board) : board_(board) {}
  void advance();

  LoadBoard* const board_;
  std::mutex mutex_;
  v1::Load newest_;
  v1::Load sent_;
  bool news_ = false;
  bool writing_ = false;
  bool gone_ = false;
  bool finished_ = false;
  std::shared_ptr<LoadWatch> self_;
};

}  // namespace penstock::replica
