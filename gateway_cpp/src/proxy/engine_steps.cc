// The steps of an engine call: each is begun, watched and read in its turn.
#include <algorithm>
#include <utility>

#include "proxy/body_job.h"
#include "proxy/engine_calls.h"
#include "proxy/engine_requests.h"
#include "proxy/failover.h"
#include "upstream/large_body.h"

namespace penstock::proxy {

namespace {

constexpr std::string_view kUnread = "its answer makes no sense";

}  // namespace

void EngineCalls::look_at(EngineLeg& leg, base::SteadyTime now) {
  using State = EngineLeg::State;
  if (leg.state == State::kWaits) {
    if (!traits_of(leg.step()).needs_prompt || prompt_) return start_step(leg);
    if (!tokenizes_) return fail(leg, prompt_fault_, "its prompt was not tokenized");
  }
  if (leg.state == State::kRuns) {
    if (!take_answer(leg)) return fail(leg, "unavailable", kUnread);
    if (leg.call->failed()) {
      note_failure(leg);
      return fail(leg, cause_of(leg.call->failure()), leg.call->failure().error.message());
    }
    if (leg.call->ended()) return end_step(leg);
    const bool is_lost = leg.to && !errand_.dispatcher->is_sound(*leg.to);
    if (is_lost) return fail(leg, "unavailable", "the engine that was to receive is lost");
  }
  if (leg.state != State::kOver && now >= leg.due) fail(leg, "deadline", "it took too long");
}

void EngineCalls::start_step(EngineLeg& leg) {
  const bool migrates = leg.wanted.verb() == v1::ENGINE_VERB_MIGRATE;
  const auto& there = seat_of(leg);
  const std::string& seq_id = leg.wanted.seq_id();
  switch (leg.step()) {
    case v1::ENGINE_VERB_TOKENIZE:
      fill_tokenized(*prompt_, errand_.program.sees_tokens, errand_.body(), leg.reply);
      return end(leg);
    case v1::ENGINE_VERB_LOOKUP:
      return open(leg, there, lookup_request(*prompt_));
    case v1::ENGINE_VERB_PREP_RECV:
      leases_.try_emplace(seq_id, Lease{.at = there, .address = {}});
      return open(leg, there,
                  prepare_request(*prompt_, leg.wanted.end(), name_of_lease(seq_id),
                                  errand_.program.transfer_deadline));
    case v1::ENGINE_VERB_REMOTE_SEND: {
      const Lease* found = lease(seq_id);
      if (found == nullptr) return fail(leg, "no_lease", {});
      const uint32_t begin = migrates ? leg.reply.matched_len() : leg.wanted.begin();
      const uint32_t wanted = leg.wanted.end();
      const uint32_t end = migrates || wanted == 0 ? found->end : std::min(wanted, found->end);
      if (migrates && begin >= end) {  // all of it was there
        leg.steps.erase(leg.steps.begin());
        return start_step(leg);
      }
      return open(leg, there,
                  send_request(*prompt_, found->address, begin, end, name_of_lease(seq_id),
                               errand_.request, errand_.program.transfer_deadline));
    }
    case v1::ENGINE_VERB_COMMIT: {
      v1::CommitRequest request;
      request.set_seq_id(name_of_lease(seq_id));
      return open(leg, there, request);
    }
    default: {
      v1::ReleaseRequest request;
      request.set_seq_id(name_of_lease(seq_id));
      return open(leg, there, request);
    }
  }
}

void EngineCalls::open(EngineLeg& leg, const EngineLeg::Replica& at,
                       const google::protobuf::Message& message, runtime::BodyShare share) {
  const auto body = std::make_shared<LargeBody>(message.SerializeAsString(), std::move(share));
  const std::string& text = *body->text;
  const bool is_large = text.size() > upstream::kLargeBodyBytes;
  upstream::CallRequest request{.request_id = errand_.request.request_id,
                                .traceparent = errand_.request.traceparent,
                                .method = "POST",
                                .path = traits_of(leg.step()).path,
                                .body = is_large ? std::string_view() : std::string_view(text),
                                .priority = errand_.request.priority,
                                .tenant = errand_.request.tenant};
  leg.answer.clear();
  leg.state = EngineLeg::State::kRuns;
  leg.call =
      errand_.parts.upstream.open({at->id().value, at->address(), at->own_token()}, request,
                                  errand_.news, is_large ? LargeBody::bytes_of(body) : nullptr);
}

void EngineCalls::end_step(EngineLeg& leg) {
  if (!read_step(leg)) return fail(leg, "unavailable", kUnread);
  leg.steps.erase(leg.steps.begin());
  leg.call.reset();
  if (leg.steps.empty()) return end(leg);
  leg.state = EngineLeg::State::kWaits;
  start_step(leg);
}

bool EngineCalls::read_step(EngineLeg& leg) {
  const std::string& seq_id = leg.wanted.seq_id();
  switch (leg.step()) {
    case v1::ENGINE_VERB_TOKENIZE:
      return read_tokenized(leg);
    case v1::ENGINE_VERB_LOOKUP:
      return read_lookup(leg);
    case v1::ENGINE_VERB_PREP_RECV:
      // Be it that the program has released it meanwhile.
      return read_prepared(
          leg, leases_.try_emplace(seq_id, Lease{.at = seat_of(leg), .address = {}}).first->second);
    case v1::ENGINE_VERB_REMOTE_SEND:
      if (!read_sent(leg)) return false;
      note_moved(leg);
      return true;
    case v1::ENGINE_VERB_COMMIT:
      return read_committed(leg);
    default:
      leases_.erase(seq_id);
      return true;
  }
}

bool EngineCalls::read_tokenized(EngineLeg& leg) {
  v1::TokenizeReply told;
  if (!told.ParseFromString(leg.answer) || !told.has_prompt()) return false;
  prompt_ = std::move(told);
  tokenizes_ = false;
  return true;
}

// A migrated context counts where it is now; a sender cannot have moved more than there was.
void EngineCalls::note_moved(const EngineLeg& leg) {
  const uint32_t moved = std::min(leg.reply.moved_tokens(), prompt_->length());
  left_[leg.to->id().value].moved_tokens += moved;
  errand_.parts.program_book.moved(errand_.uid, moved, leg.reply.moved_bytes());
}

// Whoever else works for it is told to stop: a sender whose receiver is lost by its cancel, a
// receiver whose sender is lost by the end of its lease.
void EngineCalls::fail(EngineLeg& leg, std::string cause, std::string_view detail) {
  constexpr size_t kShownBytes = 200;
  const bool sends = !leg.steps.empty() && leg.step() == v1::ENGINE_VERB_REMOTE_SEND;
  const bool is_lost = cause == "unavailable" || cause == "deadline";
  if (leg.is_ours) {
    tokenizes_ = false;
    prompt_fault_ = cause;
  }
  leg.reply.set_error(std::move(cause));
  leg.reply.set_detail(std::string(detail.substr(0, kShownBytes)));
  keep_lease(leg);
  const bool migrates = leg.wanted.verb() == v1::ENGINE_VERB_MIGRATE;
  if (leg.call && (migrates || (sends && is_lost))) release(leg.wanted.seq_id());
  end(leg);
}

void EngineCalls::end(EngineLeg& leg) {
  leg.state = EngineLeg::State::kOver;
  leg.call.reset();
  leg.places.clear();
  const bool is_known = leg.wanted.verb() == v1::ENGINE_VERB_TOKENIZE && !leg.is_ours;
  if (!is_known || !leg.reply.error().empty()) note_end(leg);
}

void EngineCalls::note_end(const EngineLeg& leg) {
  const auto now = errand_.parts.clock.steady_now();
  errand_.parts.metrics.deployment(errand_.deployment)->engine_call.observe(now - leg.begun);
  if (told_.size() == kMostLegs) told_.erase(told_.begin());
  told_.push_back({.call = traits_of(leg.wanted.verb()).name,
                   .replica = leg.at ? leg.at->id().value : "?",
                   .failure = leg.reply.error(),
                   .tokens = std::max(leg.reply.moved_tokens(), leg.reply.matched_len()),
                   .took = std::chrono::duration_cast<std::chrono::microseconds>(now - leg.begun)});
}

// What it says against the replica, and of what its engine computed.
void EngineCalls::note_failure(const EngineLeg& leg) {
  const auto against = blame_of(leg.call->failure());
  const bool computes = leg.step() == v1::ENGINE_VERB_REMOTE_SEND;
  if (computes && engine_died_with(leg.call->failure())) {
    death_.emplace(LegDeath{seat_of(leg)->id(), leg.call->failure()});
  }
  if (against) errand_.dispatcher->note_failure(*seat_of(leg), *against);
}

}  // namespace penstock::proxy
