#include "unary_call.h"

#include <utility>
#include <vector>

#include "outbox.h"
#include "sanitizer.h"

namespace penstock::replica {
namespace {

grpc::StatusCode code_of(uint32_t http_status) {
  switch (http_status) {
    case 400:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case 404:
      return grpc::StatusCode::NOT_FOUND;
    case 409:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case 501:
      return grpc::StatusCode::UNIMPLEMENTED;
    case 503:
      return grpc::StatusCode::UNAVAILABLE;
    case 504:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace

grpc::Status status_of(const v1::ErrorDetail& error) {
  return {code_of(error.status()), error.code() + ": " + error.message()};
}

bool UnaryOutlet::ready(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  ready_ = call;
  return true;
}

void UnaryOutlet::flush() {
  CallPtr call;
  bool ended = false;
  bool room = false;
  {
    std::lock_guard lock(mutex_);
    call = std::exchange(ready_, nullptr);
    if (!call || finished_) return;
    ended = finished_ = take_all(call, &room);
  }
  Switchboard* const switchboard = switchboard_;
  if (room) switchboard->room({&call, 1});
  if (!ended) return;
  switchboard->ended({&call, 1});
  hand_to_grpc(reactor_);
  reactor_->Finish(status_);
}

// Whether that was all; then the reply is set.
bool UnaryOutlet::take_all(const CallPtr& call, bool* room) {
  TokenQueue::Taken taken;
  v1::CallEvent event;
  do {
    event.Clear();
    taken = call->answer.take(&event, Outbox::kFrameBytes);
    body_.append(event.chunk().body());
    *room = *room || taken.room;
  } while (taken.more);
  if (!taken.ended) return false;
  if (event.has_failed()) status_ = status_of(event.failed().error());
  if (event.has_cancelled()) status_ = grpc::Status::CANCELLED;
  const grpc::Slice slice(body_);
  *reply_ = grpc::ByteBuffer(&slice, 1);
  return true;
}

void UnaryOutlet::gone() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
  }
  hand_to_grpc(reactor_);
  reactor_->Finish(grpc::Status::CANCELLED);
}

UnaryCall::UnaryCall(Switchboard* switchboard, const std::string& path,
                     const grpc::ByteBuffer& request, grpc::ByteBuffer* reply)
    : switchboard_(switchboard),
      outlet_(std::make_shared<UnaryOutlet>(this, reply, switchboard)),
      call_(switchboard->make(0, 0, outlet_)) {
  call_->request.set_method("POST");
  call_->request.set_path(path);
  call_->request.set_body(bytes_of(request));
  hand_to_grpc(this);
  switchboard->start({&call_, 1});
}

void UnaryCall::OnCancel() {
  back_from_grpc(this);
  switchboard_->abandon(call_);
  outlet_->gone();
}

void UnaryCall::OnDone() {
  back_from_grpc(this);
  switchboard_->abandon(call_);
  delete this;
}

}  // namespace penstock::replica
