#include "upstream/replica_session.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "runtime/signal.h"

namespace penstock::upstream {

namespace {

constexpr const char* kMethod = "/penstock.v1.Inference/Session";
constexpr std::string_view kEnded = "session to a replica ended";
constexpr size_t kKeptStartsBytes = 64UL * 1024;
// More bodies than that go in frames of their own: all that a dead replica had may come at once.
constexpr size_t kFullFrameBytes = 1024UL * 1024;

}  // namespace

std::shared_ptr<ReplicaSession> ReplicaSession::start(
    asio::io_context& io, runtime::SendBatch& sends, const std::string& address,
    std::string replica_id, const SessionSettings& settings, base::Log& log,
    std::shared_ptr<LoadListener> listener) {
  std::shared_ptr<ReplicaSession> session(
      new ReplicaSession(io, sends, std::move(replica_id), settings, log, std::move(listener)));
  const CallTarget target{.authority = address, .path = kMethod, .token = settings.token};
  session->connection_ = ReplicaConnection::start(io, target, *session);
  session->greet(settings.gateway_id);
  return session;
}

ReplicaSession::ReplicaSession(asio::io_context& io, runtime::SendBatch& sends,
                               std::string replica_id, const SessionSettings& settings,
                               base::Log& log, std::shared_ptr<LoadListener> listener)
    : io_(io),
      sends_(sends),
      replica_id_(std::move(replica_id)),
      credit_bytes_(settings.credit_bytes),
      log_(log),
      listener_(std::move(listener)) {}

// Goes with whatever is said first; a listener wants to hear before there is anything else to say.
void ReplicaSession::greet(const std::string& gateway_id) {
  v1::Hello& hello = *outgoing_.mutable_hello();
  hello.set_gateway_id(gateway_id);
  hello.set_watch_load(listener_ != nullptr);
  if (listener_) flush_later();
}

ReplicaSession::~ReplicaSession() {
  if (connection_) connection_->close();
}

std::unique_ptr<Call> ReplicaSession::open(const CallRequest& request, runtime::Signal& news,
                                           SharedBody large) {
  if (large) flush();  // what was said before goes before
  const uint64_t id = ++last_id_;
  auto call = std::make_unique<Call>(shared_from_this(), id, credit_bytes_, news);
  if (closed_to_calls()) {
    call->fail(failure_of(id));
    news.raise();
    return call;
  }
  if (request.token_groups) call->keep_groups();
  calls_.add(*call);
  const StartView start{.call_id = id, .credit_bytes = credit_bytes_, .request = request};
  if (large) {
    send_large(start, std::move(large));
    return call;
  }
  append_start(starts_, start);
  if (starts_.size() > kFullFrameBytes) flush();
  flush_later();
  return call;
}

void ReplicaSession::grant(uint64_t call_id, uint64_t bytes) {
  if (ended_) return;
  v1::Credit& credit = *outgoing_.add_credits();
  credit.set_call_id(call_id);
  credit.set_bytes(bytes);
  flush_later();
}

void ReplicaSession::release(Call& call) {
  if (!calls_.remove(call) || ended_) return;
  let_go_of_body(call.id());
  outgoing_.add_cancels(call.id());
  flush_later();
}

bool ReplicaSession::on_message(std::string_view message) {
  if (!turn_) turn_.emplace(sends_);
  const bool good = calls_.take_in(message);
  if (const auto* load = good ? calls_.load() : nullptr; load && listener_)
    listener_->on_load(*load);
  heard_ = heard_ || good;
  return good;
}

void ReplicaSession::on_turn() {
  const auto self = shared_from_this();  // the last call may go
  turn_.reset();
  wake_listed();
}

void ReplicaSession::on_end(std::string_view why) {
  const auto self = shared_from_this();
  turn_.reset();
  log_end(why);
  if (listener_) listener_->on_end();  // before the places of its calls go to others
  fail_all();
  std::string().swap(starts_);  // nothing sends them any more
  wake_listed();
}

void ReplicaSession::fail_all() {
  ended_ = true;
  note_sent();
  calls_.fail_all([this](uint64_t id) { return failure_of(id); });
}

void ReplicaSession::wake_listed() {
  if (!calls_.has_listed()) return;
  const runtime::SendBatch::Open batch(sends_);
  calls_.wake_listed([](Call& call) { call.news().raise(); });
}

// A call counts as sent once the socket may have taken the last byte of its frame.
void ReplicaSession::note_sent() {
  const uint64_t sent = connection_->handed_over();
  while (!flushed_.empty() && flushed_.front().end <= sent) {
    sent_through_ = flushed_.front().last_call;
    flushed_.pop_front();
  }
}

void ReplicaSession::log_end(std::string_view why) const {
  // A watch asks again each second: that nobody is there is told when it was.
  const bool news = heard_ || calls_.size() > 0 || !listener_;
  const base::Fields fields = {
      {"replica_id", replica_id_}, {"reason", why}, {"calls", calls_.size()}};
  news ? log_.warning(kEnded, fields) : log_.debug(kEnded, fields);
}

// Everything that one turn of the I/O thread has to say goes out in one frame.
void ReplicaSession::flush_later() {
  if (std::exchange(flush_posted_, true)) return;
  asio::post(io_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

void ReplicaSession::flush() {
  const size_t size = outgoing_.ByteSizeLong() + starts_.size();
  if (ended_ || size == 0) return;
  const bool starts = !starts_.empty();
  auto* room = reinterpret_cast<uint8_t*>(connection_->add_message(static_cast<uint32_t>(size)));
  uint8_t* const behind = outgoing_.SerializeWithCachedSizesToArray(room);
  starts_.copy(reinterpret_cast<char*>(behind), starts_.size());
  outgoing_.Clear();
  starts_.clear();
  if (starts_.capacity() > kKeptStartsBytes) starts_.shrink_to_fit();
  if (starts) flushed_.push_back({last_id_, connection_->added()});
  connection_->flush();
  if (starts) note_sent();
}

void ReplicaSession::send_large(const StartView& start, SharedBody large) {
  std::string frame;
  append_start(frame, start, large->size());
  char* room = connection_->add_message(static_cast<uint32_t>(frame.size()), std::move(large));
  frame.copy(room, frame.size());
  flushed_.push_back({start.call_id, connection_->added()});
  connection_->flush();
  note_sent();
}

// A replica that does not read would hold the share of a large body for nobody.
void ReplicaSession::let_go_of_body(uint64_t call_id) {
  note_sent();
  const auto is_before = [](const Flushed& one, uint64_t id) { return one.last_call < id; };
  const auto found = std::lower_bound(flushed_.begin(), flushed_.end(), call_id, is_before);
  if (found != flushed_.end() && found->last_call == call_id) connection_->blank_tail(found->end);
}

CallFailure ReplicaSession::failure_of(uint64_t call_id) const {
  using Source = CallFailure::Source;
  const PeerWord word = connection_->peer_word();
  const bool sent = call_id <= sent_through_ && word != PeerWord::kNotSeen;
  CallFailure failure;
  failure.source = !sent                      ? Source::kUnreachable
                   : word == PeerWord::kEnded ? Source::kEnded
                                              : Source::kLost;
  v1::ErrorDetail& error = failure.error;
  error.set_status(502);
  error.set_type("server_error");
  error.set_code("upstream_error");
  error.set_message(sent ? "The connection to replica " + replica_id_ +
                               " ended before the answer was complete. Send the request again."
                         : "Replica " + replica_id_ +
                               " cannot be reached. Send the request again in a moment.");
  error.set_fault(v1::FAULT_UPSTREAM);
  error.set_retry(v1::RETRY_BEFORE_FIRST_TOKEN);
  return failure;
}

}  // namespace penstock::upstream
