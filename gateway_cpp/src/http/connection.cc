#include "http/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "http/peer_address.h"

namespace penstock::http {

namespace {

constexpr size_t kReadBytes = 64UL * 1024;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kHandOver{2'000};
constexpr std::chrono::milliseconds kTimeToRead{150};
constexpr size_t kLingerBytes = 64UL * 1024 * 1024;
// The end was told with what came before it and is not told again; a mark stops a read.
constexpr uint32_t kMoreBehindAShortRead = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

static_assert(Connection::kAheadBytes <= kReadBytes);

// Shared by the connections of a thread: an idle one then costs no buffer.
std::array<char, kReadBytes>& read_memory() {
  static thread_local std::array<char, kReadBytes> memory;
  return memory;
}

}  // namespace

Connection::Connection(runtime::Descriptor socket, const Shared& shared,
                       std::chrono::milliseconds write_timeout)
    : socket_(std::move(socket)),
      sends_(shared.sends),
      readiness_(shared.readiness),
      registration_(readiness_.watch(socket_.number(), *this)),
      timers_(shared.timers),
      write_timeout_(write_timeout) {
  gone_ = !registration_;
}

const std::string& Connection::client_address() {
  if (client_address_.empty()) client_address_ = peer_address(socket_.number());
  return client_address_;
}

void Connection::secure(std::unique_ptr<tls::Channel> channel, std::string_view behind_it) {
  tls_ = std::move(channel);
  if (behind_it.empty()) return;
  std::string plain(behind_it.size() + tls::Channel::kMostHeld, '\0');
  std::string& answers = empty_wire_memory();
  plain.resize(tls_->open(behind_it, plain, answers).size());
  ahead_ = std::move(plain);
  put(answers);
}

std::string_view Connection::read() {
  if (gone_) return {};
  if (!ahead_.empty()) return take_ahead();
  const Part part = receive(kReadBytes);
  switch (part.received) {
    case Received::kBytes:
      return part.bytes;
    case Received::kNothingYet:
      watch();
      return {};
    case Received::kGoodbye:
    case Received::kEnd:
      say_goodbye();
      break;
    case Received::kBroken:
      break;
  }
  gone_ = true;
  return {};
}

Connection::Part Connection::receive(size_t most) {
  return tls_ ? receive_sealed(most) : receive_raw(read_memory().data(), most);
}

Connection::Part Connection::receive_raw(char* memory, size_t most) {
  while (readable_) {
    const ssize_t got = ::recv(socket_.number(), memory, most, MSG_DONTWAIT);
    if (got > 0) {
      readable_ = static_cast<size_t>(got) == most || (told_ & kMoreBehindAShortRead) != 0;
      turn_bytes_ += static_cast<size_t>(got);
      return {Received::kBytes, {memory, static_cast<size_t>(got)}};
    }
    if (got == 0) return {Received::kEnd, {}};
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      readable_ = false;
    } else if (errno != EINTR) {
      return {Received::kBroken, {}};
    }
  }
  return {Received::kNothingYet, {}};
}

// Reads until a record has brought something, or the turn is over: a client can send records that
// bring next to nothing for as long as it likes.
Connection::Part Connection::receive_sealed(size_t most) {
  using State = tls::Channel::State;
  static thread_local std::array<char, kReadBytes - tls::Channel::kMostHeld> wire;
  std::string& answers = empty_wire_memory();
  while (tls_->state() == State::kOpen) {
    const Part raw = receive_raw(wire.data(), std::min(most, wire.size()));
    if (raw.received != Received::kBytes) return raw;
    const std::string_view plain = tls_->open(raw.bytes, read_memory(), answers);
    put(answers);
    answers.clear();
    if (!plain.empty()) return {Received::kBytes, plain};
    if (turn_is_over()) return {Received::kNothingYet, {}};
  }
  return {tls_->state() == State::kEnded ? Received::kGoodbye : Received::kBroken, {}};
}

std::string_view Connection::take_ahead() {
  const size_t size = ahead_.size();
  std::memcpy(read_memory().data(), ahead_.data(), size);
  std::string().swap(ahead_);
  turn_bytes_ += size;
  return {read_memory().data(), size};
}

Awaitable<void> Connection::yield() {
  rest();
  co_await asio::post(readiness_.executor(), runtime::kAwait);
}

void Connection::begin_answer(std::string_view probe) {
  answering_ = true;
  in_parts_ = false;
  probe_ = probe;
  interim_probes_ = 0;
  if (behind_since_ && !behind() && unacknowledged() == 0) behind_since_.reset();
  if (tls_ && tls_->state() != tls::Channel::State::kOpen) return lose();  // said with the request
  watch();
}

Awaitable<void> Connection::linger(Farewell farewell) {
  if (gone_) co_return;
  answering_ = false;
  runtime::TimerWheel::Timer patience(timers_, signal_);
  patience.arm(kLinger);
  if (farewell == Farewell::kWhole) say_goodbye();
  co_await flush(patience);
  if (farewell == Farewell::kCut) co_await give_time_to_read();
  tls_.reset();  // nobody looks at what still comes
  ::shutdown(socket_.number(), SHUT_WR);
  size_t drained = 0;
  while (!gone_ && !cut_short_ && !patience.fired() && drained < kLingerBytes) {
    const auto bytes = read();
    drained += bytes.size();
    if (turn_is_over()) {
      co_await yield();
    } else if (bytes.empty() && !gone_) {
      rest();
      co_await signal_.wait();
    }
  }
}

// A browser throws away what its page has not read yet when a body breaks off: the error event that
// says why would be lost to it.
Awaitable<void> Connection::give_time_to_read() {
  runtime::TimerWheel::Timer time(timers_, signal_);
  time.arm(kTimeToRead);
  while (!gone_ && !time.fired()) co_await signal_.wait();
}

void Connection::set_ending(Ending ending) {
  const ::linger reset{.l_onoff = ending == Ending::kReset ? 1 : 0, .l_linger = 0};
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

Awaitable<void> Connection::hand_over() {
  runtime::TimerWheel::Timer patience(timers_, signal_);
  runtime::TimerWheel::Timer again(timers_, signal_);
  patience.arm(kHandOver);
  co_await flush(patience);
  while (!gone_ && !patience.fired() && unacknowledged() > 0) {
    again.arm(runtime::TimerWheel::kTick);
    co_await signal_.wait();
  }
}

void Connection::end_soon() {
  cut_short_ = true;
  signal_.raise();
}

void Connection::abort() { lose(); }

void Connection::close() {
  gone_ = true;
  if (probing_) probing_->cancel();
  registration_.end();
  socket_.close();
}

}  // namespace penstock::http
