#include "upstream/call.h"

#include <utility>

namespace penstock::upstream {

void Held::settle(const v1::Usage& usage, Ended ended) {
  if (const auto told = std::exchange(payer, nullptr)) told->cost(usage);
  place.worked(admission::TokenEstimate::work_of(usage.prompt_tokens(), usage.completion_tokens()));
  if (ended == Ended::kCutShort) place.cut_short();
  place.release();
}

void Held::drop(Silence silence) {
  if (silence == Silence::kLost) place.lost();
  const v1::Usage usage = seen;
  settle(usage, Ended::kCutShort);
}

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
  if (auto link = std::move(link_)) link->release(*this);
}

void Call::deliver(v1::CallEvent& event) {
  if (event.has_head()) {
    head_.Swap(event.mutable_head());
    has_head_ = true;
    held_.seen.set_prompt_tokens(head_.prompt_tokens());
    held_.seen.set_cached_tokens(head_.cached_tokens());
  }
  if (event.has_chunk()) {
    const v1::Chunk& chunk = event.chunk();
    deliver({.body = chunk.body(), .events = chunk.events(), .tokens = chunk.tokens()});
    if (keeps_groups_) take_groups_of(*event.mutable_chunk());
  }
  if (event.has_finished()) {
    outcome_.Swap(event.mutable_finished());
    end_ = End::kFinished;
    held_.settle(outcome_.has_usage() ? outcome_.usage() : v1::Usage(held_.seen),
                 Held::Ended::kWhole);
  } else if (event.has_failed()) {
    failure_.error.Swap(event.mutable_failed()->mutable_error());
    end_ = End::kFailed;
    held_.settle(event.failed().has_usage() ? event.failed().usage() : v1::Usage(held_.seen),
                 Held::Ended::kCutShort);
  }
}

void Call::deliver(const ChunkView& chunk) {
  pending_.append(chunk.body);
  pending_events_ += chunk.events;
  held_.seen.set_completion_tokens(held_.seen.completion_tokens() + chunk.tokens);
}

void Call::take_groups_of(v1::Chunk& chunk) {
  for (v1::TokenGroup& group : *chunk.mutable_groups()) groups_.push_back(std::move(group));
}

void Call::hold(Held held) {
  if (ended()) {
    held.drop(Held::Silence::kLost);
  } else if (link_) {
    held_ = std::move(held);
  }
}

void Call::fail(CallFailure failure) {
  failure_ = std::move(failure);
  end_ = End::kFailed;
  held_.drop(Held::Silence::kLost);
}

}  // namespace penstock::upstream
