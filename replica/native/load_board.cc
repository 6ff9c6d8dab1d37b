#include "load_board.h"

#include <google/protobuf/util/message_differencer.h>

#include <utility>
#include <vector>

#include "sanitizer.h"

namespace penstock::replica {

v1::Load LoadBoard::load() const {
  std::lock_guard lock(mutex_);
  return load_;
}

void LoadBoard::set(const v1::Load& load, std::chrono::steady_clock::time_point now) {
  std::vector<std::shared_ptr<LoadWatch>> watches;
  {
    std::lock_guard lock(mutex_);
    const bool same = google::protobuf::util::MessageDifferencer::Equals(load, load_);
    if (same && now - published_ < kRepeat) return;
    load_ = load;
    published_ = now;
    watches.assign(watches_.begin(), watches_.end());
  }
  for (const auto& watch : watches) watch->publish(load);
}

void LoadBoard::enter(const std::shared_ptr<LoadWatch>& watch) {
  v1::Load now;
  {
    std::lock_guard lock(mutex_);
    watches_.insert(watch);
    now = load_;
  }
  watch->publish(now);
}

void LoadBoard::leave(const std::shared_ptr<LoadWatch>& watch) {
  std::lock_guard lock(mutex_);
  watches_.erase(watch);
}

LoadWatch* LoadWatch::start(LoadBoard* board) {
  const std::shared_ptr<LoadWatch> watch(new LoadWatch(board));
  watch->self_ = watch;
  hand_to_grpc(watch.get());
  board->enter(watch);
  return watch.get();
}

void LoadWatch::publish(const v1::Load& load) {
  {
    std::lock_guard lock(mutex_);
    newest_ = load;
    news_ = true;
  }
  advance();
}

void LoadWatch::advance() {
  bool finish = false;
  {
    std::lock_guard lock(mutex_);
    if (writing_ || finished_ || (!news_ && !gone_)) return;
    finish = finished_ = gone_;
    if (!finish) {
      sent_ = newest_;
      news_ = false;
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
