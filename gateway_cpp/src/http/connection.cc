#include "http/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <tuple>

namespace penstock::http {

namespace {

constexpr size_t kReadBytes = 64UL * 1024;
constexpr size_t kKeptUnsentBytes = 64UL * 1024;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr size_t kLingerBytes = 64UL * 1024 * 1024;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Connection::Connection(Socket socket, proxy::TimerWheel& timers,
                       std::chrono::milliseconds write_timeout)
    : socket_(std::move(socket)), timers_(timers), write_timeout_(write_timeout) {}

std::string_view Connection::read() {
  // Shared by the connections of a thread: an idle one then costs no buffer.
  static thread_local std::array<char, kReadBytes> buffer;
  if (gone_) return {};
  for (;;) {
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (got > 0) return {buffer.data(), static_cast<size_t>(got)};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) {
      watch();
    } else {
      gone_ = true;
    }
    return {};
  }
}

void Connection::begin_answer() {
  answering_ = true;
  watch();
}

// One wait for readability at a time serves both a request that is awaited and a client that
// leaves.
void Connection::watch() {
  if (watching_ || gone_) return;
  watching_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](boost::system::error_code ec) {
    self->watching_ = false;
    if (!ec) self->on_readable();
  });
}

void Connection::on_readable() {
  if (answering_) {
    char byte = 0;
    const ssize_t got =
        ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL);
    const bool spurious = got < 0 && (would_block(errno) || errno == EINTR);
    if (spurious) return watch();
    if (got > 0) return;  // a pipelined request: read when its turn comes
    gone_ = true;
  }
  signal_.raise();
}

size_t Connection::try_send(std::string_view bytes) {
  for (;;) {
    const ssize_t sent =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EINTR) continue;
    if (!would_block(errno)) gone_ = true;
    return 0;
  }
}

Sent Connection::send(std::string_view bytes) {
  if (gone_) return Sent::kGone;
  if (!unsent_.empty()) {
    unsent_.append(bytes);
    return Sent::kBlocked;
  }
  const size_t sent = try_send(bytes);
  if (gone_) return Sent::kGone;
  if (sent == bytes.size()) return Sent::kAll;
  unsent_.assign(bytes.substr(sent));
  return Sent::kBlocked;
}

Awaitable<Sent> Connection::flush() {
  proxy::TimerWheel::Timer stalled(timers_, signal_);
  stalled.arm(write_timeout_);
  while (!gone_) {
    const size_t sent = try_send(unsent_);
    unsent_.erase(0, sent);
    if (unsent_.empty()) break;
    if (sent > 0) stalled.arm(write_timeout_);
    if (stalled.fired()) gone_ = too_slow_ = true;
    if (gone_) break;
    wait_writable();
    co_await signal_.wait();
  }
  if (unsent_.capacity() > kKeptUnsentBytes) std::string().swap(unsent_);
  co_return gone_ ? Sent::kGone : Sent::kAll;
}

void Connection::wait_writable() {
  if (waiting_writable_) return;
  waiting_writable_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](boost::system::error_code ec) {
    self->waiting_writable_ = false;
    if (!ec) self->signal_.raise();
  });
}

Awaitable<void> Connection::linger() {
  if (gone_) co_return;
  boost::system::error_code ignored;
  std::ignore = socket_.shutdown(Socket::shutdown_send, ignored);
  answering_ = false;
  proxy::TimerWheel::Timer patience(timers_, signal_);
  patience.arm(kLinger);
  size_t drained = 0;
  while (!gone_ && !patience.fired() && drained < kLingerBytes) {
    const auto bytes = read();
    drained += bytes.size();
    if (bytes.empty() && !gone_) co_await signal_.wait();
  }
}

void Connection::end_soon() {
  cut_short_ = true;
  signal_.raise();
}

void Connection::abort() {
  gone_ = true;
  signal_.raise();
}

void Connection::close() {
  gone_ = true;
  boost::system::error_code ignored;
  std::ignore = socket_.close(ignored);
}

}  // namespace penstock::http
