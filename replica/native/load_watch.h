// One `Inference.WatchLoad`. A slow watcher skips loads, and gets the newest one next.
// Owned by itself until OnDone, and by the board while it is entered there.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>

#include "load_board.h"
#include "penstock/v1/inference.pb.h"
#include "switchboard.h"

namespace penstock::replica {

class LoadWatch final : public grpc::ServerWriteReactor<v1::Load>,
                        public LoadWatcher,
                        public std::enable_shared_from_this<LoadWatch> {
 public:
  static LoadWatch* start(LoadBoard* board, Switchboard* switchboard);

  void tell() override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  LoadWatch(LoadBoard* board, Switchboard* switchboard)
      : board_(board), switchboard_(switchboard) {}
  void advance();

  LoadBoard* const board_;
  Switchboard* const switchboard_;
  std::mutex mutex_;
  v1::Load sent_;
  bool to_tell_ = false;
  bool writing_ = false;
  bool gone_ = false;
  bool finished_ = false;
  std::shared_ptr<LoadWatch> self_;
};

}  // namespace penstock::replica
