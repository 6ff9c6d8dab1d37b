#include "control_plane/shadow_client.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"

namespace penstock::control_plane {
namespace {

using admission::ShadowOutcome;
using std::chrono::milliseconds;

constexpr milliseconds kCountsInterval{1000};  // while there are no pairs
constexpr std::size_t kBatchPairs = 64;
constexpr std::size_t kBatchBytes = 1U << 20U;

// The comparer has looked at a batch and ended the stream for it. All else may be well once it is
// back.
bool is_refusal(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string find_comparer(const std::string& told, const std::string& control) {
  if (!told.starts_with(':')) return told;
  return control.empty() ? control : control.substr(0, control.rfind(':')) + told;
}

ShadowClient::ShadowClient(Teller teller, Connect connect, admission::ShadowBook& book,
                           OnQuestion ask)
    : teller_(std::move(teller)), connect_(std::move(connect)), book_(book), ask_(std::move(ask)) {}

ShadowClient::~ShadowClient() { stop(); }

void ShadowClient::start() {
  thread_ = std::thread([this] { run(); });
}

void ShadowClient::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ShadowClient::point_at(const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (address == address_) return;
  address_ = address;
  is_there_.store(!address.empty(), std::memory_order_relaxed);
  if (address.empty()) drop_all();
  if (call_ != nullptr) call_->TryCancel();
  changed_.notify_all();
}

void ShadowClient::drop_all() {
  for (const Offered& one : offered_) book_.count(one.pair.rule(), {}, ShadowOutcome::kNoComparer);
  for (const auto& sent : sent_) count_dropped(*sent);
  ++dropped_;
  offered_.clear();
  sent_.clear();
  pairs_ = bytes_ = 0;
  has_room_.store(true, std::memory_order_relaxed);
}

void ShadowClient::forget_first() {
  const Sent& one = *sent_.front();
  pairs_ -= static_cast<std::size_t>(one.batch.pairs_size());
  bytes_ -= one.bytes;
  sent_.pop_front();
  has_room_.store(true, std::memory_order_relaxed);
}

void ShadowClient::count_dropped(const Sent& sent) {
  for (const auto& pair : sent.batch.pairs()) {
    book_.count(pair.rule(), {}, ShadowOutcome::kNoComparer);
  }
}

void ShadowClient::offer(v1::ShadowPair pair, std::shared_ptr<const std::string> body) {
  constexpr std::size_t kRest = 1024;  // what else there is to a pair, about
  const std::size_t bytes = body->size() + pair.primary().body().size() +
                            pair.candidate().body().size() + pair.again().body().size() + kRest;
  const std::lock_guard lock(mutex_);
  if (address_.empty()) return book_.count(pair.rule(), {}, ShadowOutcome::kNoComparer);
  if (pairs_ >= kMostPairs || bytes_ + bytes > kMostBytes) {
    has_room_.store(pairs_ == 0, std::memory_order_relaxed);
    return book_.count(pair.rule(), {}, ShadowOutcome::kOverload);
  }
  ++pairs_;
  bytes_ += bytes;
  offered_.push_back({std::move(pair), std::move(body), bytes});
  changed_.notify_all();
}

void ShadowClient::run() {
  base::Backoff backoff;
  do {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !address_.empty(); });
      if (stopping_) return;
    }
    if (record_until_broken()) backoff.reset();
  } while (wait(backoff.next()));
}

// True if the comparer has counted anything.
bool ShadowClient::record_until_broken() {
  grpc::ClientContext context;
  std::string address;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || address_.empty()) return false;
    address = address_;
    call_ = &context;
    broken_ = heard_ = false;
    asked_.clear();
    replies_.clear();
  }
  const HeadChannel channel = connect_(address);
  channel.authorize(context);
  const auto stub = v1::Shadow::NewStub(channel.channel);
  const auto stream = stub->Record(&context);
  std::thread reader([this, &stream] { hear_all(*stream); });
  write_all(*stream);
  reader.join();  // the stream has ended: to cancel it here would hide why
  return note_end(stream->Finish());
}

bool ShadowClient::note_end(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  if (heard_) refused_ = 0;
  if (heard_ || sent_.empty() || !is_refusal(status)) return heard_;
  if (++refused_ < kMostRefusals) return false;
  refused_ = 0;
  count_dropped(*sent_.front());
  forget_first();
  return false;
}

void ShadowClient::write_all(Stream& stream) {
  if (!write_again(stream)) return;
  Told told;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kCountsInterval, [this] {
        return stopping_ || broken_ || !offered_.empty() || !replies_.empty();
      });
      if (stopping_ || broken_) return;
    }
    if (!write_replies(stream)) return;
    const auto next = next_batch(told);
    if (next && !stream.Write(next->batch)) return;
  }
}

// What the stream before had not acknowledged.
bool ShadowClient::write_again(Stream& stream) {
  std::deque<std::shared_ptr<const Sent>> again;
  {
    const std::lock_guard lock(mutex_);
    again = sent_;
  }
  return std::ranges::all_of(again, [&](const auto& sent) { return stream.Write(sent->batch); });
}

// Nobody counts them: one that is lost is a check that one pair goes without.
bool ShadowClient::write_replies(Stream& stream) {
  std::vector<v1::ShadowReply> replies;
  {
    const std::lock_guard lock(mutex_);
    replies.swap(replies_);
  }
  return std::ranges::all_of(replies, [&](v1::ShadowReply& reply) {
    v1::ShadowBatch batch;
    batch.set_gateway_id(teller_.gateway_id);
    batch.set_instance(teller_.instance);
    *batch.add_replies() = std::move(reply);
    return stream.Write(batch);
  });
}

// Null: there is nothing to tell. Bodies are copied without the lock: requests' threads may want
// it.
std::shared_ptr<const ShadowClient::Sent> ShadowClient::next_batch(Told& told) {
  std::vector<Offered> taken;
  std::uint64_t dropped = 0;
  auto sent = std::make_shared<Sent>();
  v1::ShadowBatch& batch = sent->batch;
  add_counts(told, batch);
  {
    const std::lock_guard lock(mutex_);
    dropped = dropped_;
    while (!offered_.empty() && taken.size() < kBatchPairs && sent->bytes < kBatchBytes) {
      sent->bytes += offered_.front().bytes;
      taken.push_back(std::move(offered_.front()));
      offered_.pop_front();
    }
    if (taken.empty() && batch.counts().empty()) return nullptr;
    batch.set_number(++number_);
  }
  batch.set_gateway_id(teller_.gateway_id);
  batch.set_instance(teller_.instance);
  for (Offered& one : taken) {
    one.pair.set_body(*one.body);
    *batch.add_pairs() = std::move(one.pair);
  }
  if (!taken.empty()) keep(sent, dropped);
  return sent;
}

// Until it is acknowledged, unless all was dropped meanwhile. What has no pairs need not be.
void ShadowClient::keep(std::shared_ptr<const Sent> sent, std::uint64_t dropped) {
  const std::lock_guard lock(mutex_);
  if (dropped == dropped_) {
    sent_.push_back(std::move(sent));
  } else {
    count_dropped(*sent);
  }
}

void ShadowClient::add_counts(Told& told, v1::ShadowBatch& batch) const {
  for (const admission::ShadowRow& row : book_.rows()) {
    for (std::size_t i = 0; i < row.counts.size(); ++i) {
      auto& before = told[{row.uid, i}];
      if (before == row.counts[i]) continue;
      before = row.counts[i];
      v1::ShadowCount& count = *batch.add_counts();
      count.set_rule(row.uid);
      count.set_outcome(std::string(name(static_cast<ShadowOutcome>(i))));
      count.set_count(row.counts[i]);
    }
  }
}

void ShadowClient::hear_all(Stream& stream) {
  v1::ShadowRecorded recorded;
  while (stream.Read(&recorded)) {
    if (recorded.number() > 0) acknowledge(recorded.number());
    for (auto& question : *recorded.mutable_questions()) take(std::move(question));
  }
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
}

void ShadowClient::take(v1::ShadowQuestion question) {
  {
    const std::lock_guard lock(mutex_);
    if (asked_.size() < kMostQuestions) {
      asked_.insert(question.id());
    } else {
      v1::ShadowReply& reply = replies_.emplace_back();
      reply.set_id(question.id());
      reply.set_outcome(std::string(name(ShadowOutcome::kOverload)));
      return changed_.notify_all();
    }
  }
  ask_(std::move(question));
}

// To a question of a stream that has ended nobody waits for a reply.
void ShadowClient::reply(v1::ShadowReply reply) {
  const std::lock_guard lock(mutex_);
  if (asked_.erase(reply.id()) == 0) return;
  replies_.push_back(std::move(reply));
  changed_.notify_all();
}

// They come in the order of their batches; one stands for those before it.
void ShadowClient::acknowledge(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  heard_ = true;
  while (!sent_.empty() && sent_.front()->batch.number() <= number) {
    for (const auto& pair : sent_.front()->batch.pairs()) {
      book_.count(pair.rule(), {}, ShadowOutcome::kPaired);
    }
    forget_first();
  }
}

bool ShadowClient::wait(milliseconds duration) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration, [this] { return stopping_; });
}

}  // namespace penstock::control_plane
