#include "upstream/call.h"

#include <utility>

namespace penstock::upstream {

void Held::settle(const Usage& usage, Ended ended) {
  if (const auto told = std::exchange(payer, nullptr)) told->cost(usage);
  place.worked(admission::TokenEstimate::work_of(usage.prompt_tokens, usage.completion_tokens));
  if (ended == Ended::kCutShort) place.cut_short();
  place.release();
}

void Held::drop(Silence silence) {
  if (silence == Silence::kLost) place.lost();
  const Usage usage = seen;
  settle(usage, Ended::kCutShort);
}

Call::Call(std::shared_ptr<CallLink> link, uint64_t id, uint64_t credit_bytes,
           runtime::Signal& news)
    : id_(id), news_(news), credit_bytes_(credit_bytes), link_(std::move(link)) {}

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

bool Call::was_read(const CallEvent& event) {
  const bool can_be = reader_ != nullptr && event.rest == nullptr && pending_.empty();
  if (!can_be || !reader_->read(*this, event.chunk)) return false;
  held_.seen.completion_tokens += event.chunk.tokens;
  return true;
}

bool Call::deliver(const CallEvent& event) {
  if (was_read(event)) return false;
  CallEvent::Rest* rest = event.rest;
  if (rest != nullptr && rest->head) begin(*std::move(rest->head));
  take_chunk(event.chunk);
  if (rest == nullptr) return true;
  v1::CallEvent* parsed = rest->parsed;
  if (keeps_groups_ && parsed != nullptr) take_groups_of(*parsed->mutable_chunk());
  if (rest->finished) {
    finish(*std::move(rest->finished));
  } else if (parsed != nullptr && parsed->has_failed()) {
    end_failed(*parsed->mutable_failed());
  }
  return true;
}

void Call::begin(Head head) {
  head_ = std::move(head);
  has_head_ = true;
  held_.seen.prompt_tokens = head_.prompt_tokens;
  held_.seen.cached_tokens = head_.cached_tokens;
}

void Call::take_chunk(const ChunkView& chunk) {
  if (!chunk.body.empty()) pending_.append(chunk.body);
  pending_events_ += chunk.events;
  held_.seen.completion_tokens += chunk.tokens;
}

void Call::finish(Outcome outcome) {
  outcome_ = std::move(outcome);
  end_ = End::kFinished;
  if (outcome_.usage) held_.seen = *outcome_.usage;
  const Usage cost = held_.seen;
  held_.settle(cost, Held::Ended::kWhole);
}

void Call::end_failed(v1::Failed& failed) {
  failure_.emplace().error.Swap(failed.mutable_error());
  end_ = End::kFailed;
  if (failed.has_usage()) held_.seen = usage_of(failed.usage());
  const Usage cost = held_.seen;
  held_.settle(cost, Held::Ended::kCutShort);
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
