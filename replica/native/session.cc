#include "session.h"

#include <utility>

#include "delivery.h"
#include "errors.h"
#include "sanitizer.h"

namespace penstock::replica {
namespace {

// A frame keeps the memory of its events for the next one, unless one of them was unusually large.
constexpr size_t kKeepBodyBytes = 4 << 10;

}  // namespace

void SessionOutlet::flush() {
  Outbox::Filled filled;
  const Next next = next_step(&filled);
  if (next == Next::kNothing) return;
  if (next != Next::kWrite) {
    hand_to_grpc(session_);
    session_->Finish(next == Next::kFinish ? grpc::Status::OK : grpc::Status::CANCELLED);
    return;
  }
  Switchboard* const switchboard = switchboard_;
  hand_to_grpc(session_);
  session_->StartWrite(&frame_);
  switchboard->ended(filled.ended);
  switchboard->room(filled.room);
}

SessionOutlet::Next SessionOutlet::next_step(Outbox::Filled* filled) {
  std::lock_guard lock(mutex_);
  if (writing_ || finished_) return Next::kNothing;
  if (!gone_ && outbox_.fill(&frame_, filled)) {
    largest_body_ = filled->largest_body;
    writing_ = true;
    return Next::kWrite;
  }
  if (gone_ || (half_closed_ && outbox_.empty())) {
    finished_ = true;
    return gone_ ? Next::kFinishCancelled : Next::kFinish;
  }
  return Next::kNothing;
}

void SessionOutlet::written(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    reset_frame();
  }
  if (ok) {
    flush();
  } else {
    gone();
  }
}

void SessionOutlet::reset_frame() {
  if (largest_body_ > kKeepBodyBytes) {
    v1::ServerFrame().Swap(&frame_);
  } else {
    frame_.Clear();
  }
}

void SessionOutlet::half_closed() {
  {
    std::lock_guard lock(mutex_);
    half_closed_ = true;
  }
  flush();
}

void SessionOutlet::gone() {
  {
    std::lock_guard lock(mutex_);
    gone_ = true;
  }
  for (const CallPtr& call : outbox_.remove_all()) switchboard_->cancel(call);
  flush();
}

Session::Session(Switchboard* switchboard)
    : switchboard_(switchboard), outlet_(std::make_shared<SessionOutlet>(this, switchboard)) {
  hand_to_grpc(this);
  StartRead(&incoming_);
}

void Session::OnReadDone(bool ok) {
  back_from_grpc(this);
  if (!ok) {
    outlet_->half_closed();
    return;
  }
  start_calls(&incoming_);
  {
    Delivery delivery;
    for (const v1::Credit& credit : incoming_.credits()) {
      const CallPtr call = outlet_->outbox().find(credit.call_id());
      if (call) delivery.add_credit(call, credit.bytes());
    }
  }
  for (uint64_t id : incoming_.cancels()) {
    if (const CallPtr call = outlet_->outbox().remove(id)) switchboard_->cancel(call);
  }
  incoming_.Clear();
  hand_to_grpc(this);
  StartRead(&incoming_);
}

void Session::start_calls(v1::ClientFrame* frame) {
  std::vector<CallPtr> calls;
  calls.reserve(static_cast<size_t>(frame->starts_size()));
  for (v1::Start& start : *frame->mutable_starts()) {
    CallPtr call = switchboard_->make(start.call_id(), start.initial_credit_bytes(), outlet_);
    call->request.Swap(start.mutable_request());
    if (outlet_->outbox().add(call)) calls.push_back(std::move(call));
  }
  switchboard_->start(calls);
}

void Session::OnWriteDone(bool ok) {
  back_from_grpc(this);
  outlet_->written(ok);
}

void Session::OnCancel() {
  back_from_grpc(this);
  outlet_->gone();
}

void Session::OnDone() {
  back_from_grpc(this);
  // A frame that was being read while the client left may have started calls after `gone`.
  for (const CallPtr& call : outlet_->outbox().remove_all()) switchboard_->cancel(call);
  delete this;
}

}  // namespace penstock::replica
