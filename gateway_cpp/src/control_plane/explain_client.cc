#include "control_plane/explain_client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "observe/record_filter.h"
#include "observe/record_tail.h"
#include "penstock/v1/routes.grpc.pb.h"

namespace penstock::control_plane {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSoon{1'000};
constexpr milliseconds kSeldom{60'000};  // a head that does not know the stream
constexpr std::size_t kTogether = 100;   // records of one message
constexpr milliseconds kGather{100};  // between messages of tails: what ends meanwhile goes along

}  // namespace

ExplainClient::ExplainClient(std::string gateway_id, std::string instance, HeadChannel head,
                             observe::RecordStore& records, milliseconds patience)
    : gateway_id_(std::move(gateway_id)),
      instance_(std::move(instance)),
      head_(std::move(head)),
      records_(records),
      patience_(patience) {}

ExplainClient::~ExplainClient() { stop(); }

void ExplainClient::start() {
  if (head_) thread_ = std::thread([this] { run(); });
}

void ExplainClient::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExplainClient::run() {
  while (wait(explain_until_broken())) {
  }
}

// How long to wait for the next try.
milliseconds ExplainClient::explain_until_broken() {
  grpc::ClientContext context;
  head_.authorize(context);
  context.set_wait_for_ready(true);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return kSoon;
    call_ = &context;
    broken_ = news_ = false;
    questions_.clear();
  }
  const auto stub = v1::Routes::NewStub(head_.channel);
  const auto stream = stub->Explain(&context);
  v1::ExplainReply hello;
  hello.set_gateway_id(gateway_id_);
  hello.set_instance(instance_);
  const bool goes_on = stream->Write(hello);
  std::thread reader([this, &stream] { hear_all(*stream); });
  if (goes_on) answer_all(*stream);
  give_up(context);
  reader.join();
  const grpc::Status status = stream->Finish();
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  return status.error_code() == grpc::StatusCode::UNIMPLEMENTED ? kSeldom : kSoon;
}

// Whoever reads waits for room no longer: nobody makes any.
void ExplainClient::give_up(grpc::ClientContext& context) {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  changed_.notify_all();
  context.TryCancel();
}

// Until the stream ends.
void ExplainClient::hear_all(Stream& stream) {
  v1::ExplainQuestion question;
  while (stream.Read(&question)) {
    const auto now = steady_clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [this] { return stopping_ || broken_ || questions_.size() < kMostQuestions; });
    if (stopping_ || broken_) continue;
    questions_.push_back({std::move(question), now});
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  broken_ = true;
  changed_.notify_all();
}

// Questions in their order; between them what tails have. Tails end with their stream.
void ExplainClient::answer_all(Stream& stream) {
  Tails tails;
  auto due = steady_clock::now();
  while (const auto work = next_work(due)) {
    if (work->asked && !answer(stream, *work->asked, tails)) return;
    if (!work->tails) continue;
    for (const auto& [number, tail] : tails) {
      if (!tell_tail(stream, number, *tail)) return;
    }
    due = steady_clock::now() + kGather;
  }
}

// Waits for it. Nothing: the stream is over. `due`: tails are not told before.
std::optional<ExplainClient::Work> ExplainClient::next_work(steady_clock::time_point due) {
  std::unique_lock lock(mutex_);
  const auto is_called = [this] { return stopping_ || broken_ || !questions_.empty(); };
  changed_.wait(lock, [&] { return news_ || is_called(); });
  if (news_) changed_.wait_until(lock, due, is_called);
  if (stopping_ || broken_) return std::nullopt;
  Work work;
  if (!questions_.empty()) {
    work.asked = std::move(questions_.front());
    questions_.pop_front();
    changed_.notify_all();
  }
  work.tails = news_ && steady_clock::now() >= due;
  if (work.tails) news_ = false;
  return work;
}

bool ExplainClient::answer(Stream& stream, const Asked& asked, Tails& tails) {
  const v1::ExplainQuestion& question = asked.question;
  const bool is_late = steady_clock::now() - asked.at >= patience_;
  switch (question.ask_case()) {
    case v1::ExplainQuestion::kList:
      if (is_late) break;
      return tell(stream, question.number(), records_.list(question.list()));
    case v1::ExplainQuestion::kId:
      if (is_late) break;
      return tell(stream, question.number(), records_.find(question.id()));
    case v1::ExplainQuestion::kTail:
      if (!records_.keeps()) break;  // it is told of no request, either
      tails[question.number()] = records_.tail(question.tail(), [this] { wake(); });
      return true;
    case v1::ExplainQuestion::kForget:
      tails.erase(question.forget());
      return true;
    case v1::ExplainQuestion::ASK_NOT_SET:  // of a head that asks more than is known here
      break;
  }
  return tell(stream, question.number(), {});
}

// In parts; the last one says so, be it empty.
bool ExplainClient::tell(Stream& stream, std::uint64_t question,
                         const std::vector<std::string>& records) {
  std::size_t told = 0;
  do {
    v1::ExplainReply reply;
    reply.set_question(question);
    const std::size_t end = std::min(told + kTogether, records.size());
    for (; told < end; ++told) reply.add_records()->ParseFromString(records[told]);
    reply.set_last(told == records.size());
    if (reply.last()) reply.set_kept_since_us(records_.kept_since_us());
    if (!stream.Write(reply)) return false;
  } while (told < records.size());
  return true;
}

bool ExplainClient::tell_tail(Stream& stream, std::uint64_t question, observe::RecordTail& tail) {
  const auto news = tail.take();
  v1::ExplainReply reply;
  reply.set_question(question);
  reply.set_left_out(news.left_out);
  const auto write = [&] {
    if (reply.records_size() == 0 && reply.left_out() == 0) return true;
    const bool written = stream.Write(reply);
    reply.clear_records();
    reply.clear_left_out();
    return written;
  };
  v1::RequestRecord record;
  for (const std::string& bytes : news.records) {
    if (!record.ParseFromString(bytes) || !observe::matches(tail.filter(), record)) continue;
    reply.add_records()->Swap(&record);
    if (static_cast<std::size_t>(reply.records_size()) == kTogether && !write()) return false;
  }
  return write();
}

void ExplainClient::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(news_, true)) return;
  }
  changed_.notify_all();
}

bool ExplainClient::wait(milliseconds duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [this] { return stopping_; });
  return !stopping_;
}

}  // namespace penstock::control_plane
