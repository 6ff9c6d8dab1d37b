#include "observe/otlp_sender.h"

#include <algorithm>
#include <utility>

#include "base/config.h"
#include "observe/attributes.h"
#include "observe/otlp_reply.h"

namespace penstock::observe {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

OtlpSender::OtlpSender(std::unique_ptr<HttpPost> post, Collector collector, NamedTexts resource,
                       base::Log& log, OtlpLimits limits)
    : post_(std::move(post)),
      collector_(std::move(collector)),
      resource_(std::move(resource)),
      log_(log),
      limits_(limits) {}

OtlpSender::~OtlpSender() { stop(); }

void OtlpSender::start() {
  thread_ = std::thread([this] { run(); });
}

void OtlpSender::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      ends_at_ = steady_clock::now() + limits_.last;
      post_->end_within(limits_.last);
    }
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OtlpSender::offer(const SpanFacts& facts, std::string bytes) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || offered_.size() >= limits_.waiting || bytes_ + bytes.size() > limits_.bytes) {
      queue_full_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    bytes_ += bytes.size();
    offered_.push_back({facts, std::move(bytes)});
    is_due = offered_.size() == 1 || offered_.size() == limits_.batch;
  }
  if (is_due) changed_.notify_all();
}

TraceCounts OtlpSender::counts() const {
  return {.sent = sent_.load(std::memory_order_relaxed),
          .queue_full = queue_full_.load(std::memory_order_relaxed),
          .collector = lost_.load(std::memory_order_relaxed)};
}

void OtlpSender::run() {
  for (Batch batch = next_batch(); !batch.empty(); batch = next_batch()) send(batch);
}

OtlpSender::Batch OtlpSender::next_batch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_ || !offered_.empty(); });
  changed_.wait_for(lock, limits_.gather,
                    [this] { return stopping_ || offered_.size() >= limits_.batch; });
  Batch batch;
  while (!offered_.empty() && batch.size() < limits_.batch) {
    bytes_ -= offered_.front().bytes.size();
    batch.push_back(std::move(offered_.front()));
    offered_.pop_front();
  }
  return batch;
}

OtlpSender::Body OtlpSender::body_of(const Batch& batch) const {
  otlp::ExportTraceServiceRequest request;
  otlp::ResourceSpans& all = *request.add_resource_spans();
  Attributes resource(all.mutable_resource()->mutable_attributes());
  for (const auto& [key, value] : resource_) resource.text(key, value);
  otlp::ScopeSpans& spans = *all.add_scope_spans();
  spans.mutable_scope()->set_name("penstock.gateway");
  spans.mutable_scope()->set_version(std::string(base::version()));
  v1::RequestRecord record;
  for (const Offered& one : batch) {
    if (record.ParseFromString(one.bytes)) add_spans(record, one.facts, spans);
  }
  return {.bytes = request.SerializeAsString(),
          .spans = static_cast<std::uint64_t>(spans.spans_size())};
}

void OtlpSender::send(const Batch& batch) {
  const Body body = body_of(batch);
  PostAnswer answer{.error = "its time was over"};
  for (unsigned tries = 1; tries <= limits_.tries; ++tries) {
    const milliseconds within = time_for_send();
    if (within.count() <= 0) break;
    answer = post_->send(body.bytes, within);
    const PostVerdict verdict = verdict_of(answer);
    if (verdict == PostVerdict::kTaken) return note_taken(batch.size(), body.spans, answer);
    if (verdict == PostVerdict::kRefused || tries == limits_.tries) break;
    const auto random = static_cast<std::uint32_t>(random_());
    if (!pause(wait_after(tries, answer, {limits_.first_wait, random}))) break;
  }
  note_lost(batch.size(), answer);
}

// Which spans were thrown away is not told: they count as their share of the requests, one at
// least.
void OtlpSender::note_taken(std::uint64_t requests, std::uint64_t spans, const PostAnswer& answer) {
  const std::uint64_t rejected = rejected_spans(answer);
  const std::uint64_t share =
      requests * std::min(rejected, spans) / std::max(spans, std::uint64_t{1});
  const std::uint64_t lost = rejected == 0 ? 0 : std::max(share, std::uint64_t{1});
  sent_.fetch_add(requests - lost, std::memory_order_relaxed);
  lost_.fetch_add(lost, std::memory_order_relaxed);
  if (rejected > 0) {
    log_.warning("the collector threw spans away",
                 {{"collector", collector_.shown()}, {"spans", rejected}});
  }
  if (!std::exchange(takes_, true)) {
    log_.info("traces are taken again", {{"collector", collector_.shown()}});
  }
}

// Told once, however long it lasts; the counts say how many.
void OtlpSender::note_lost(std::size_t requests, const PostAnswer& answer) {
  lost_.fetch_add(requests, std::memory_order_relaxed);
  if (!std::exchange(takes_, false)) return;
  log_.warning("traces are not taken", {{"collector", collector_.shown()},
                                        {"status", answer.status},
                                        {"error", answer.error},
                                        {"requests", requests}});
}

bool OtlpSender::pause(milliseconds duration) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, duration, [this] { return stopping_; });
}

milliseconds OtlpSender::time_for_send() {
  const std::lock_guard lock(mutex_);
  if (!stopping_) return collector_.timeout;
  const auto left = std::chrono::duration_cast<milliseconds>(ends_at_ - steady_clock::now());
  return std::min(left, collector_.timeout);
}

}  // namespace penstock::observe
