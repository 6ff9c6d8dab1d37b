#include "load_watch.h"

#include <utility>

#include "sanitizer.h"

namespace penstock::replica {

LoadWatch* LoadWatch::start(LoadBoard* board, Switchboard* switchboard) {
  const std::shared_ptr<LoadWatch> watch(new LoadWatch(board, switchboard));
  watch->self_ = watch;
  hand_to_grpc(watch.get());
  board->enter(watch);
  return watch.get();
}

void LoadWatch::tell() {
  {
    std::lock_guard lock(mutex_);
    to_tell_ = true;
  }
  advance();
}

void LoadWatch::advance() {
  bool finish = false;
  {
    std::lock_guard lock(mutex_);
    if (writing_ || finished_ || (!to_tell_ && !gone_)) return;
    finish = finished_ = gone_;
    if (!finish) {
      sent_ = board_->load_for(*this);
      switchboard_->tell_calls(nullptr, &sent_);
      to_tell_ = false;
      writing_ = true;
    }
  }
  hand_to_grpc(this);
  if (finish) {
    Finish(grpc::Status::CANCELLED);
  } else {
    StartWrite(&sent_);
  }
}

void LoadWatch::OnWriteDone(bool ok) {
  back_from_grpc(this);
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    gone_ = gone_ || !ok;
  }
  advance();
}

void LoadWatch::OnCancel() {
  back_from_grpc(this);
  {
    std::lock_guard lock(mutex_);
    gone_ = true;
  }
  advance();
}

void LoadWatch::OnDone() {
  back_from_grpc(this);
  const std::shared_ptr<LoadWatch> keep = std::move(self_);
  board_->leave(keep);
}

}  // namespace penstock::replica
