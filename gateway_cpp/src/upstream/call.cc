#include "upstream/call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "upstream/call_checks.h"

namespace penstock::upstream {

namespace {

// A failure of the replica's, on which another may do better.
v1::ErrorDetail broken_answer(std::string message) {
  v1::ErrorDetail error;
  error.set_status(502);
  error.set_type("server_error");
  error.set_code("upstream_error");
  error.set_message(std::move(message) + " Send the request again.");
  error.set_fault(v1::FAULT_UPSTREAM);
  error.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  return error;
}

template <class Number>
Number less(Number whole, Number part) {
  return whole - std::min(whole, part);
}

Usage less(const Usage& whole, const Usage& part) {
  return {.prompt_tokens = less(whole.prompt_tokens, part.prompt_tokens),
          .completion_tokens = less(whole.completion_tokens, part.completion_tokens),
          .cached_tokens = less(whole.cached_tokens, part.cached_tokens),
          .cost_nanousd = less(whole.cost_nanousd, part.cost_nanousd)};
}

}  // namespace

Usage Held::unpaid() const { return payer ? less(seen, paid) : Usage(); }

void Held::pay(const Usage& usage) {
  if (const auto told = std::exchange(payer, nullptr)) told->cost(less(usage, paid));
}

// Tokens of calls before are read as the prompt is.
void Held::settle(const Usage& usage, Ended ended) {
  pay(usage);
  const uint64_t read = uint64_t{usage.prompt_tokens} + paid.completion_tokens;
  place.worked(admission::TokenEstimate::work_of(
      read, less(usage.completion_tokens, paid.completion_tokens)));
  if (ended == Ended::kCutShort) place.cut_short();
  place.release();
}

bool Held::settle_by(const CallEvent& event) {
  if (event.rest == nullptr) return false;
  const v1::CallEvent* parsed = event.rest->parsed;
  if (parsed != nullptr && parsed->has_cancelled()) {
    settle(bounded(usage_of(parsed->cancelled().usage())), Ended::kCutShort);
  } else if (event.rest->finished) {
    settle(bounded(event.rest->finished->usage.value_or(Usage())), Ended::kWhole);
  } else if (parsed != nullptr && parsed->has_failed()) {
    settle(bounded(usage_of(parsed->failed().usage())), Ended::kCutShort);
  } else {
    return false;
  }
  return true;
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
  pending_groups_.clear();
  if (pending_groups_.capacity() > kKeptGroupBytes) pending_groups_.shrink_to_fit();
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
  const bool can_be =
      reader_ != nullptr && event.rest == nullptr && pending_.empty() && pending_groups_.empty();
  if (!can_be || !reader_->read(*this, event.chunk)) return false;
  held_.seen.completion_tokens += event.chunk.tokens;
  return true;
}

bool Call::deliver(const CallEvent& event) {
  const bool is_wanted = !ended();
  if (is_wanted && !is_plausible(event.chunk, held_.seen)) {
    give_up("a part of it counts more than it can have");
  } else if (is_wanted) {
    if (was_read(event)) return false;
    take(event);
  }
  // Of a call that broke its word what comes is for its payer alone.
  if (ended() && !over_) over_ = held_.settle_by(event);
  return is_wanted;
}

void Call::take(const CallEvent& event) {
  CallEvent::Rest* rest = event.rest;
  if (rest != nullptr && rest->head) begin(*std::move(rest->head));
  if (ended()) return;
  take_chunk(event.chunk);
  if (rest != nullptr) take_rest(*rest);
}

void Call::take_rest(CallEvent::Rest& rest) {
  v1::CallEvent* parsed = rest.parsed;
  if (rest.finished) {
    finish(*std::move(rest.finished));
  } else if (parsed != nullptr && parsed->has_failed()) {
    end_failed(*parsed->mutable_failed());
  } else if (parsed != nullptr && parsed->has_cancelled()) {
    end_unasked(parsed->cancelled());
  }
}

void Call::begin(Head head) {
  const std::string fault = has_head_ ? "it begins twice" : fault_of(head);
  if (!fault.empty()) return give_up(fault);
  head_ = std::move(head);
  has_head_ = true;
  held_.seen.prompt_tokens = head_.prompt_tokens;
  held_.seen.cached_tokens = head_.cached_tokens;
}

void Call::take_chunk(const ChunkView& chunk) {
  if (!chunk.body.empty()) pending_.append(chunk.body);
  pending_events_ += chunk.events;
  if (keeps_groups_ && pending_groups_.size() <= kMostGroupBytes) {
    pending_groups_.append(chunk.groups.bytes);
  }
  held_.seen.completion_tokens += chunk.tokens;
}

// Of an answer that it goes on with it counts all, and has sent none a second time: else its client
// has more than the whole. Who counts the rest alone counts wrongly, and harms nobody.
bool Call::adds_up(const Finished& outcome) const {
  const uint32_t before = held_.paid.completion_tokens;
  const uint32_t whole = outcome.usage ? outcome.usage->completion_tokens : 0;
  return before == 0 || whole < before || whole >= held_.seen.completion_tokens;
}

// What it says at its end is believed or not as a whole: then it costs what was seen.
void Call::finish(Finished outcome) {
  std::string fault = fault_of(outcome);
  const bool repeated = fault.empty() && !adds_up(outcome);
  if (repeated) fault = "its client had some of it before";
  if (!fault.empty()) {
    give_up(fault);
    failure_->repeated = repeated;
    return end(Held::Ended::kCutShort);
  }
  outcome_ = std::move(outcome);
  end_ = End::kFinished;
  if (outcome_.usage) held_.seen = *outcome_.usage;
  end(Held::Ended::kWhole);
}

void Call::end_failed(v1::Failed& failed) {
  bound(*failed.mutable_error());
  failure_.emplace().error.Swap(failed.mutable_error());
  end_ = End::kFailed;
  if (failed.has_usage()) held_.seen = bounded(usage_of(failed.usage()));
  end(Held::Ended::kCutShort);
}

// Nobody here has asked for it, or nothing would be delivered.
void Call::end_unasked(const v1::Cancelled& cancelled) {
  failure_.emplace().error =
      broken_answer("The replica stopped working on this answer before its end.");
  failure_->stopped = true;
  end_ = End::kFailed;
  if (cancelled.has_usage()) held_.seen = bounded(usage_of(cancelled.usage()));
  end(Held::Ended::kCutShort);
}

void Call::end(Held::Ended ended) {
  over_ = true;
  const Usage cost = held_.seen;
  held_.settle(cost, ended);
}

// Nothing that comes after this is taken, and what the replica holds for it stays until that has
// been told to stop.
void Call::give_up(std::string_view fault) {
  failure_.emplace().error =
      broken_answer("The replica's answer cannot be passed on: " + std::string(fault) + ".");
  end_ = End::kFailed;
}

void Call::hold(Held held) {
  if (ended()) {
    held.drop(Held::Silence::kLost);
  } else if (link_) {
    held_ = std::move(held);
  }
}

bool Call::fail(CallFailure failure) {
  const bool is_news = !ended();
  if (is_news) failure_ = std::move(failure);
  end_ = End::kFailed;
  over_ = true;
  held_.drop(Held::Silence::kLost);
  return is_news;
}

}  // namespace penstock::upstream
