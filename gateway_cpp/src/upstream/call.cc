#include "upstream/call.h"

#include <utility>

namespace penstock::upstream {

Call::Call(std::shared_ptr<CallLink> link, uint64_t id, uint64_t credit_bytes,
           runtime::Signal& news)
    : link_(std::move(link)), id_(id), credit_bytes_(credit_bytes), news_(news) {}

Call::~Call() { cancel(); }

void Call::take(runtime::Payload& payload) {
  payload.swap(pending_);
  pending_events_ = 0;
}

void Call::wrote(uint64_t bytes) {
  if (credit_bytes_ == 0 || ended() || !link_) return;
  owed_bytes_ += bytes;
  if (owed_bytes_ * 2 < credit_bytes_) return;
  link_->grant(id_, std::exchange(owed_bytes_, 0));
}

void Call::cancel() {
  slot_.release();
  if (auto link = std::move(link_)) link->release(*this);
}

void Call::deliver(v1::CallEvent& event) {
  if (event.has_head()) {
    head_.Swap(event.mutable_head());
    has_head_ = true;
  }
  if (event.has_chunk()) {
    pending_.append(event.chunk().body());
    pending_events_ += event.chunk().events();
  }
  if (event.has_finished()) {
    outcome_.Swap(event.mutable_finished());
    end_ = End::kFinished;
  } else if (event.has_failed()) {
    failure_.error.Swap(event.mutable_failed()->mutable_error());
    end_ = End::kFailed;
  }
  if (ended()) slot_.release();
}

void Call::occupy(routing::InFlight slot) {
  if (!ended() && link_) slot_ = std::move(slot);
}

void Call::fail(CallFailure failure) {
  failure_ = std::move(failure);
  end_ = End::kFailed;
  slot_.release();
}

}  // namespace penstock::upstream
