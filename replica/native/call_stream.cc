#include "call_stream.h"

#include <utility>

#include "outbox.h"
#include "sanitizer.h"

namespace penstock::replica {

bool CallStreamOutlet::ready(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  ready_ = call;
  return true;
}

void CallStreamOutlet::flush() {
  TokenQueue::Taken taken;
  CallPtr call;
  const Next next = next_step(&taken, &call);
  if (next == Next::kNothing) return;
  if (next != Next::kWrite) {
    hand_to_grpc(stream_);
    stream_->Finish(next == Next::kFinish ? grpc::Status::OK : grpc::Status::CANCELLED);
    return;
  }
  Switchboard* const switchboard = switchboard_;
  hand_to_grpc(stream_);
  stream_->StartWrite(&event_);
  if (taken.ended) switchboard->ended({&call, 1});
  if (taken.room) switchboard->room({&call, 1});
}

CallStreamOutlet::Next CallStreamOutlet::next_step(TokenQueue::Taken* taken, CallPtr* call) {
  std::lock_guard lock(mutex_);
  if (writing_ || finished_) return Next::kNothing;
  if (ready_ && !gone_ && !ended_) {
    *call = std::exchange(ready_, nullptr);
    *taken = (*call)->answer.take(&event_, Outbox::kFrameBytes);
    if (taken->more) ready_ = *call;
    ended_ = taken->ended;
    writing_ = taken->anything;
    if (writing_) return Next::kWrite;
  }
  if (!gone_ && !ended_) return Next::kNothing;
  finished_ = true;
  return ended_ ? Next::kFinish : Next::kFinishCancelled;
}

void CallStreamOutlet::written(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    event_.Clear();
    gone_ = gone_ || !ok;
  }
  flush();
}

void CallStreamOutlet::gone() {
  {
    std::lock_guard lock(mutex_);
    gone_ = true;
    ready_ = nullptr;
  }
  flush();
}

CallStream::CallStream(Switchboard* switchboard, const v1::CallRequest& request)
    : switchboard_(switchboard),
      outlet_(std::make_shared<CallStreamOutlet>(this, switchboard)),
      call_(switchboard->make(0, 0, outlet_)) {
  call_->request = request;
  hand_to_grpc(this);
  switchboard->start({&call_, 1});
}

void CallStream::OnWriteDone(bool ok) {
  back_from_grpc(this);
  outlet_->written(ok);
}

void CallStream::OnCancel() {
  back_from_grpc(this);
  switchboard_->abandon(call_);
  outlet_->gone();
}

void CallStream::OnDone() {
  back_from_grpc(this);
  switchboard_->abandon(call_);
  delete this;
}

}  // namespace penstock::replica
