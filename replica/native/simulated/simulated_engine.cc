#include "simulated/simulated_engine.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "errors.h"
#include "simulated/request.h"
#include "simulated/resumption.h"
#include "trace.h"

namespace penstock::replica::simulated {
namespace {

// An unpaced stream gets this many tokens at a time, so that many streams move together.
constexpr uint64_t kSliceTokens = 64;
constexpr uint32_t kRefusedRetryMs = 1000;
// What the prefix cache holds where KV blocks are not simulated.
constexpr size_t kUnboundBlocks = 65'536;

int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

SimulatedEngine::SimulatedEngine(Settings settings, std::shared_ptr<Inbox> inbox)
    : settings_(std::move(settings)),
      inbox_(std::move(inbox)),
      born_(std::chrono::steady_clock::now()),
      cache_(settings_.kv_blocks > 0 ? settings_.kv_blocks : kUnboundBlocks),
      thread_([this] { run(); }) {}

SimulatedEngine::~SimulatedEngine() { stop(); }

void SimulatedEngine::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Time SimulatedEngine::now() const { return std::chrono::steady_clock::now() - born_; }

void SimulatedEngine::run() {
  while (true) {
    Delivery delivery;
    std::unique_lock lock(mutex_);
    while (!stopping_ && now() < planned_) {
      if (planned_ == kNever) {
        wake_.wait(lock);
      } else {
        wake_.wait_until(lock, born_ + planned_);
      }
    }
    if (stopping_) return;
    planned_ = advance(now(), &delivery);
  }
}

void SimulatedEngine::start(std::span<const CallPtr> calls) {
  Delivery delivery;
  for (const CallPtr& call : calls) begin(call, &delivery);
  std::lock_guard lock(mutex_);
  plan(advance(now(), &delivery));
}

void SimulatedEngine::begin(const CallPtr& call, Delivery* delivery) {
  v1::ErrorDetail refusal = refusal_of(*call);
  if (refusal.status() == 0) refusal = find_adapter(&call->request);
  if (refusal.status() != 0) {
    delivery->fail(call, refusal);
    return;
  }
  auto ask = read_request(&call->request, settings_);
  if (const auto* error = std::get_if<v1::ErrorDetail>(&ask)) {
    delivery->fail(call, *error);
    return;
  }
  mistake(call->request, &std::get<Ask>(ask).seed);
  if (const auto error = misfit(call->request, std::get<Ask>(ask))) {
    delivery->fail(call, *error);
    return;
  }
  std::string().swap(*call->request.mutable_body());
  std::lock_guard lock(mutex_);
  accept(call, std::get<Ask>(ask));
}

void SimulatedEngine::accept(const CallPtr& call, const Ask& ask) {
  const v1::CallRequest& request = call->request;
  const AdapterId id{request.adapter(), request.adapter_digest()};
  if (!id.name.empty() && !adapters_.enter(id, now())) {
    if (adapters_.park(id, {call, ask})) {
      v1::CallRequest wanted;
      wanted.set_adapter(id.name);
      wanted.set_adapter_digest(id.digest);
      wanted.set_adapter_wait_ms(request.adapter_wait_ms());
      inbox_->post(Inbox::Kind::kWanted, 0, wanted.SerializeAsString());
    }
    return;
  }
  auto stream = std::make_shared<Stream>(call, ask, now(), seconds_since_1970());
  hash_prompt(ask, stream.get());
  call->request.clear_resume();
  streams_.emplace(call->key, stream);
  if (call->internal || stream->is_complete()) {
    stream->admitted = stream->accepted;
    prefills_.emplace(stream->accepted, std::move(stream));
  } else {
    ++figures_.waiting;
    figures_.waiting_tokens += stream->prefill_tokens();
    stream->waits = true;
    stream->place = {stream->priority, arrived_++};
    waiting_.emplace(stream->place, std::move(stream));
  }
}

v1::ErrorDetail SimulatedEngine::refusal_of(const Call& call) const {
  const v1::CallRequest& request = call.request;
  if (!call.internal && is_refused(request.request_id(), settings_.refuse_share)) {
    return unavailable("queue_full", "The simulated engine refuses this request (refuse_share).",
                       kRefusedRetryMs);
  }
  if (request.has_resume() && !settings_.no_resume.empty()) {
    return unavailable("resume_unsupported",
                       "This replica continues no answer of another: " + settings_.no_resume + ".");
  }
  return {};
}

void SimulatedEngine::cancel(const CallPtr& call) {
  Delivery delivery;
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(call->key);
  if (found == streams_.end()) {
    if (adapters_.unpark(call)) delivery.end_cancelled(call, {});
    return;
  }
  stop_cancelled(StreamPtr(found->second), &delivery);
  plan(advance(now(), &delivery));
}

void SimulatedEngine::room(std::span<const CallPtr> calls) {
  std::lock_guard lock(mutex_);
  for (const CallPtr& call : calls) {
    const auto found = streams_.find(call->key);
    if (found == streams_.end() || !found->second->held) continue;
    found->second->held = false;
    if (found->second->period == Time(0)) unpaced_.push_back(found->second);
  }
  if (!unpaced_.empty()) plan(Time(0));
}

Figures SimulatedEngine::figures() const {
  std::lock_guard lock(mutex_);
  return figures_;
}

v1::Usage SimulatedEngine::cost(const CallPtr& call) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(call->key);
  return found == streams_.end() ? v1::Usage() : found->second->usage();
}

void SimulatedEngine::tell_figures(v1::Load* load) const { tell(figures(), settings_, load); }

void SimulatedEngine::watch(std::function<void()> changed) {
  std::lock_guard lock(mutex_);
  changed_ = std::move(changed);
}

void SimulatedEngine::plan(Time next) {
  const bool earlier = next < planned_;
  planned_ = next;
  if (earlier) wake_.notify_one();
}

Time SimulatedEngine::advance(Time now, Delivery* delivery) {
  if (stopped()) return kNever;
  changed_();
  admit_waiting(now);
  begin_due(now, delivery);
  step_groups(now, delivery);
  run_unpaced(now, delivery);
  // Streams that ended have freed slots, which the next turn gives away.
  return stopped() ? kNever : next_wake(now);
}

void SimulatedEngine::admit_waiting(Time now) {
  while (slot_for_next()) {
    StreamPtr stream = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    --figures_.waiting;
    figures_.waiting_tokens -= stream->prefill_tokens();
    ++figures_.running;
    figures_.kv_blocks_used += stream->blocks;
    stream->waits = false;
    stream->has_slot = true;
    stream->call->aboard = true;
    stream->admitted = now;
    find_cached(stream.get());
    prefills_.emplace(now + prefill_of(*stream), std::move(stream));
  }
}

// Whoever runs alone gets its blocks even where there are too few.
bool SimulatedEngine::slot_for_next() const {
  if (waiting_.empty() || figures_.running >= settings_.max_running) return false;
  const uint64_t blocks =
      figures_.kv_blocks_used + figures_.leased_blocks + waiting_.begin()->second->blocks;
  return settings_.kv_blocks == 0 || figures_.running == 0 || blocks <= settings_.kv_blocks;
}

void SimulatedEngine::begin_due(Time now, Delivery* delivery) {
  while (!prefills_.empty() && prefills_.begin()->first <= now && !stopped()) {
    const StreamPtr stream = std::move(prefills_.begin()->second);
    prefills_.erase(prefills_.begin());
    if (stream->over) continue;
    stream->first_token = now;
    cache_.add(stream->hashes);
    if (stream->has_slot) {
      figures_.prompt_tokens += stream->prefill_tokens() - stream->found;
      figures_.prefix_hits += stream->found;
    }
    if (stream->period == Time(0)) {
      unpaced_.push_back(stream);
      continue;
    }
    stream->next_step = second_token_step(now, stream->period);
    produce(stream, 1, now, delivery);
    Group& group = groups_[stream->period];
    group.period = stream->period;
    if (!stream->over) group.streams.push_back(stream);
  }
}

void SimulatedEngine::step_groups(Time now, Delivery* delivery) {
  for (auto group = groups_.begin(); group != groups_.end() && !stopped();) {
    if (step_group(&group->second, now, delivery)) count_step(group->second.period);
    group = group->second.streams.empty() ? groups_.erase(group) : std::next(group);
  }
}

// Whether any token was due.
bool SimulatedEngine::step_group(Group* group, Time now, Delivery* delivery) {
  std::vector<StreamPtr>& streams = group->streams;
  bool stepped = false;
  const int64_t step = step_at(now, group->period);
  for (size_t i = 0; i < streams.size() && !stopped();) {
    Stream& stream = *streams[i];
    const int64_t due = tokens_due(stream.next_step, now, group->period);
    stream.next_step = std::max(stream.next_step, step + 1);
    stepped = stepped || due > 0;
    if (due > 0 && !stream.held && !stream.over) {
      produce(streams[i], static_cast<uint64_t>(due), now, delivery);
    }
    if (stream.over) {
      streams[i] = std::move(streams.back());
      streams.pop_back();
    } else {
      ++i;
    }
  }
  return stepped;
}

void SimulatedEngine::count_step(Time took) {
  ++figures_.steps;
  figures_.step_us = static_cast<uint32_t>(std::min<uint64_t>(micros(took), UINT32_MAX));
}

void SimulatedEngine::run_unpaced(Time now, Delivery* delivery) {
  if (unpaced_.empty()) return;
  std::vector<StreamPtr> round;
  round.swap(unpaced_);
  for (const StreamPtr& stream : round) {
    if (stopped()) return;
    if (!stream->over) produce(stream, kSliceTokens, now, delivery);
    if (!stream->over && !stream->held) unpaced_.push_back(stream);
  }
  count_step(this->now() - now);
}

Time SimulatedEngine::next_wake(Time now) const {
  if (!unpaced_.empty() || slot_for_next()) return now;
  Time next = prefills_.empty() ? kNever : prefills_.begin()->first;
  for (const auto& [period, group] : groups_) {
    next = std::min(next, (step_at(now, period) + 1) * period);
  }
  return next;
}

void SimulatedEngine::produce(const StreamPtr& stream, uint64_t count, Time now,
                              Delivery* delivery) {
  Stream& s = *stream;
  uint64_t upto = std::min(s.sent + count, s.answer.tokens());
  const uint64_t before = s.answer.delivered_tokens();
  for (uint64_t fault : {s.behaviour.die_after_tokens, s.behaviour.hang_after_tokens}) {
    if (fault > 0 && !s.call->internal) upto = std::min(upto, before + fault);
  }
  if (!std::exchange(s.begun, true)) {
    s.answer.add_begin(&news_);
    news_.head.set_backend_version(settings_.backend_version);
    news_.head.set_model_version(settings_.model_version);
    news_.head.set_model(settings_.model);
    news_.head.set_cached_tokens(s.cached_tokens());
    news_.head.set_kv_moved_tokens(s.moved);
    news_.head.set_resumable(!s.unary && s.call->request.token_groups() &&
                             settings_.no_resume.empty());
  }
  if (!s.unary) s.answer.add_words(s.sent, upto - s.sent, &news_);
  if (!s.call->internal) figures_.tokens += upto - s.sent;
  s.sent = upto;
  const bool fault = reaches_fault(s);
  const bool ended = !fault && s.sent == s.answer.tokens();
  if (ended) finish(&s, now, &news_);
  if (s.unary && !ended) {
    news_.clear();
    s.begun = false;
    return;
  }
  const TokenQueue::Pushed pushed = delivery->push(s.call, news_);
  s.held = pushed.full;
  if (ended) {
    release(stream);
  } else if (pushed.closed) {
    stop_cancelled(stream, delivery);
  }
}

bool SimulatedEngine::reaches_fault(const Stream& stream) {
  if (stream.call->internal) return false;
  const Behaviour& behaviour = stream.behaviour;
  const uint64_t made = stream.sent - stream.answer.delivered_tokens();
  if (behaviour.die_after_tokens > 0 && made >= behaviour.die_after_tokens) {
    dead_ = true;
    inbox_->post(Inbox::Kind::kDied, 0,
                 "the simulated engine died after " + std::to_string(made) + " tokens of call " +
                     stream.call->request.request_id() + " (die_after_tokens)");
  } else if (behaviour.hang_after_tokens > 0 && made >= behaviour.hang_after_tokens) {
    hung_ = true;
  }
  return stopped();
}

void SimulatedEngine::finish(Stream* stream, Time now, News* news) {
  stream->answer.add_end(news, stream->cached_tokens());
  v1::Finished* finished = news->end.mutable_finished();
  *finished->mutable_usage() = stream->usage();
  finished->mutable_timings()->set_queue_us(micros(stream->admitted - stream->accepted));
  finished->mutable_timings()->set_prefill_us(micros(stream->first_token - stream->admitted));
  finished->mutable_timings()->set_decode_us(micros(now - stream->first_token));
  finished->add_finish_reasons(std::string(stream->answer.finish_reason()));
  finished->set_backend("simulated");
  finished->set_backend_version(settings_.backend_version);
  finished->set_model_version(settings_.model_version);
  finished->set_model(settings_.model);
  finished->set_adapter(stream->adapter);
  finished->set_request_id(stream->call->request.request_id());
  finished->set_trace_id(std::string(trace_id_of(stream->call->request.traceparent())));
  const Time first_bytes = stream->unary ? now : stream->first_token;
  finished->set_ttft_us(micros(first_bytes - stream->accepted));
  finished->set_total_us(micros(now - stream->accepted));
}

void SimulatedEngine::stop_cancelled(const StreamPtr& stream, Delivery* delivery) {
  release(stream);
  delivery->end_cancelled(stream->call, stream->usage());
}

void SimulatedEngine::release(const StreamPtr& stream) {
  stream->over = true;
  if (stream->has_slot) {
    --figures_.running;
    figures_.kv_blocks_used -= stream->blocks;
  } else if (stream->waits) {
    --figures_.waiting;
    figures_.waiting_tokens -= stream->prefill_tokens();
    waiting_.erase(stream->place);
  }
  streams_.erase(stream->call->key);
  if (!stream->adapter.empty() && adapters_.leave(stream->adapter, now())) {
    inbox_->post(Inbox::Kind::kIdle, 0);
  }
  if ((stream->call->key & kAskedKeys) != 0) asked_.erase(stream->call->key & ~kAskedKeys);
}

}  // namespace penstock::replica::simulated
