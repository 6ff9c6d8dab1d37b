#include "session.h"

#include <utility>

#include "delivery.h"
#include "errors.h"
#include "penstock/v1/inference.grpc.pb.h"  // brings how gRPC reads and writes messages
#include "sanitizer.h"

namespace penstock::replica {
namespace {

// A frame keeps the memory of its events for the next one, unless one of them was unusually large.
constexpr size_t kKeepBodyBytes = 4 << 10;

bool parse(grpc::ByteBuffer* bytes, v1::ClientFrame* frame) {
  return grpc::SerializationTraits<v1::ClientFrame>::Deserialize(bytes, frame).ok();
}

void serialise(const v1::ServerFrame& frame, grpc::ByteBuffer* bytes) {
  bool own = false;
  // Cannot fail: frames are built here, and are far below protobuf's limit of 2 GiB.
  grpc::SerializationTraits<v1::ServerFrame>::Serialize(frame, bytes, &own);
}

void reset(v1::ServerFrame* frame, size_t largest_body) {
  if (largest_body > kKeepBodyBytes) {
    v1::ServerFrame().Swap(frame);
  } else {
    frame->Clear();
  }
}

}  // namespace

void SessionOutlet::flush() {
  Outbox::Filled filled;
  const Next next = next_step(&filled);
  if (next == Next::kNothing) return;
  if (next == Next::kFinish) {
    hand_to_grpc(session_);
    session_->Finish(ending_);
    return;
  }
  Switchboard* const switchboard = switchboard_;
  hand_to_grpc(session_);
  session_->StartWrite(&outgoing_);
  switchboard->room(filled.room);
}

SessionOutlet::Next SessionOutlet::next_step(Outbox::Filled* filled) {
  std::lock_guard lock(mutex_);
  if (writing_ || finished_) return Next::kNothing;
  if (!gone_ && fill(filled)) {
    serialise(frame_, &outgoing_);
    reset(&frame_, filled->largest_body);
    writing_ = true;
    return Next::kWrite;
  }
  finished_ = !resuming_ && (gone_ || (half_closed_ && outbox_.empty()));
  return finished_ ? Next::kFinish : Next::kNothing;
}

bool SessionOutlet::fill(Outbox::Filled* filled) {
  const bool events = outbox_.fill(&frame_, filled);
  // Before the load is read: a call whose end is told counts no more, in no frame.
  switchboard_->ended(filled->ended);
  const bool goes_along = events && watches_load_ && load_board_->is_due(*this);
  if (!to_tell_ && !goes_along) return events;
  to_tell_ = false;
  *frame_.mutable_load() = load_board_->load_for(*this);
  switchboard_->tell_calls(gateway_.get(), frame_.mutable_load());
  return true;
}

void SessionOutlet::tell() {
  {
    std::lock_guard lock(mutex_);
    to_tell_ = true;
  }
  flush();
}

void SessionOutlet::written(bool ok) {
  {
    std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
  }
  if (ok) {
    flush();
  } else {
    gone();
  }
}

void SessionOutlet::half_closed() {
  {
    std::lock_guard lock(mutex_);
    half_closed_ = true;
  }
  flush();
}

void SessionOutlet::gone(const grpc::Status& status) {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(gone_, true)) ending_ = status;
  }
  for (const CallPtr& call : outbox_.remove_all()) switchboard_->abandon(call);
  flush();
}

void SessionOutlet::resume_reading() {
  {
    std::lock_guard lock(mutex_);
    if (finished_) return;
    resuming_ = true;
  }
  session_->start_read();
  {
    std::lock_guard lock(mutex_);
    resuming_ = false;
  }
  flush();
}

Session::Session(Switchboard* switchboard, LoadBoard* load_board, std::shared_ptr<Inbox> inbox,
                 std::string peer)
    : switchboard_(switchboard),
      load_board_(load_board),
      inbox_(std::move(inbox)),
      peer_(std::move(peer)),
      outlet_(std::make_shared<SessionOutlet>(this, switchboard, load_board)) {
  start_read();
}

void Session::start_read() {
  hand_to_grpc(this);
  StartRead(&incoming_);
}

void Session::OnReadDone(bool ok) {
  back_from_grpc(this);
  if (!ok) {
    outlet_->half_closed();
    return;
  }
  const size_t bytes = incoming_.Length();
  if (!parse(&incoming_, &frame_)) {
    end_unreadable(bytes);
    return;
  }
  if (!outlet_->gateway()) greet(frame_);
  carry_out(&frame_);
  frame_.Clear();
  const auto outlet = outlet_;
  if (!inbox_->wait_for_room([outlet] { outlet->resume_reading(); })) start_read();
}

void Session::end_unreadable(size_t bytes) {
  const std::string reason = "a frame of " + std::to_string(bytes) + " bytes is no ClientFrame";
  inbox_->post(Inbox::Kind::kNotice, 0, "the session of " + peer_ + " is ended: " + reason);
  outlet_->gone(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                             reason + ": every call of this session is cancelled"));
}

void Session::greet(const v1::ClientFrame& frame) {
  outlet_->belongs_to(switchboard_->gateway(frame.hello().gateway_id()));
  if (!frame.hello().watch_load()) return;
  outlet_->watch_load();
  load_board_->enter(outlet_);
}

void Session::carry_out(v1::ClientFrame* frame) {
  start_calls(frame);
  {
    Delivery delivery;
    for (const v1::Credit& credit : frame->credits()) {
      const CallPtr call = outlet_->outbox().find(credit.call_id());
      if (call) delivery.add_credit(call, credit.bytes());
    }
  }
  for (uint64_t id : frame->cancels()) {
    if (const CallPtr call = outlet_->outbox().find(id)) switchboard_->cancel(call);
  }
}

void Session::start_calls(v1::ClientFrame* frame) {
  std::vector<CallPtr> calls;
  calls.reserve(static_cast<size_t>(frame->starts_size()));
  for (v1::Start& start : *frame->mutable_starts()) {
    CallPtr call = switchboard_->make(start.call_id(), start.initial_credit_bytes(), outlet_,
                                      outlet_->gateway());
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
  for (const CallPtr& call : outlet_->outbox().remove_all()) switchboard_->abandon(call);
  load_board_->leave(outlet_);
  delete this;
}

}  // namespace penstock::replica
