#include "http/connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <tuple>

namespace penstock::http {

namespace {

constexpr size_t kReadBytes = 64UL * 1024;
constexpr size_t kKeptUnsentBytes = 64UL * 1024;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kHandOver{2'000};
constexpr std::chrono::seconds kProbeInterval{1};
constexpr unsigned kInterimProbes = 4;  // Go's client takes more interim answers for an attack
constexpr size_t kLingerBytes = 64UL * 1024 * 1024;

static_assert(Connection::kAheadBytes <= kReadBytes);

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Connection::Connection(Socket socket, proxy::TimerWheel& timers,
                       std::chrono::milliseconds write_timeout)
    : socket_(std::move(socket)), timers_(timers), write_timeout_(write_timeout) {}

std::string_view Connection::read() {
  // Shared by the connections of a thread: an idle one then costs no buffer.
  static thread_local std::array<char, kReadBytes> buffer;
  if (gone_) return {};
  if (!ahead_.empty()) return take_ahead(buffer.data());
  for (;;) {
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      turn_bytes_ += static_cast<size_t>(got);
      return {buffer.data(), static_cast<size_t>(got)};
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) {
      watch();
    } else {
      gone_ = true;
    }
    return {};
  }
}

std::string_view Connection::take_ahead(char* memory) {
  const size_t size = ahead_.size();
  std::memcpy(memory, ahead_.data(), size);
  std::string().swap(ahead_);
  turn_bytes_ += size;
  return {memory, size};
}

Awaitable<void> Connection::yield() {
  rest();
  co_await asio::post(socket_.get_executor(), upstream::kAwait);
}

void Connection::begin_answer(std::string_view probe) {
  answering_ = true;
  probe_ = probe;
  interim_probes_ = 0;
  if (behind_since_ && unsent_.empty() && unacknowledged() == 0) behind_since_.reset();
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
    read_ahead();
  } else {
    signal_.raise();
  }
}

// What comes during an answer is a later request, kept for its turn, or the client's end. Without
// reading it the end behind it would not be seen.
void Connection::read_ahead() {
  std::array<char, 4096> part;
  while (!gone_) {
    const size_t room = std::min(part.size(), kAheadBytes - ahead_.size());
    if (room == 0) return watch_for_reset();
    const ssize_t got = ::recv(socket_.native_handle(), part.data(), room, MSG_DONTWAIT);
    if (got > 0) {
      ahead_.append(part.data(), static_cast<size_t>(got));
    } else if (got == 0) {
      return ask_whether_it_reads();
    } else if (would_block(errno)) {
      return watch();
    } else if (errno != EINTR) {
      return lose();
    }
  }
}

// The client has ended its side. Asked again and again, since a proxy in between may take the first
// probe and learn only then that nobody is behind it.
void Connection::ask_whether_it_reads() {
  if (probe_.empty()) return lose();
  watch_for_reset();
  const bool interim = probe_.starts_with("HTTP/");
  if (unsent_.empty() && (!interim || interim_probes_ < kInterimProbes)) {
    if (interim) ++interim_probes_;
    const size_t sent = try_send(probe_);
    if (gone_) return lose();
    unsent_.assign(probe_.substr(sent));
  }
  if (!probing_) probing_ = std::make_unique<ProbeTimer>(socket_.get_executor());
  probing_->expires_after(kProbeInterval);
  probing_->async_wait([self = shared_from_this()](boost::system::error_code ec) {
    if (!ec && self->answering_ && !self->gone_) self->ask_whether_it_reads();
  });
}

void Connection::watch_for_reset() {
  if (watching_for_reset_ || gone_) return;
  watching_for_reset_ = true;
  socket_.async_wait(Socket::wait_error, [self = shared_from_this()](boost::system::error_code ec) {
    self->watching_for_reset_ = false;
    if (ec || self->gone_) return;
    pollfd state{self->socket_.native_handle(), 0, 0};
    ::poll(&state, 1, 0);
    if ((state.revents & (POLLERR | POLLHUP)) != 0) self->lose();
  });
}

void Connection::lose() {
  gone_ = true;
  signal_.raise();
}

size_t Connection::try_send(std::string_view bytes) {
  for (;;) {
    const ssize_t sent =
        ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      sent_total_ += static_cast<uint64_t>(sent);
      return static_cast<size_t>(sent);
    }
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

void Connection::send_unsent() {
  unsent_begin_ += try_send(std::string_view(unsent_).substr(unsent_begin_));
  if (unsent_begin_ < unsent_.size()) return;
  unsent_.clear();
  unsent_begin_ = 0;
  if (unsent_.capacity() > kKeptUnsentBytes) std::string().swap(unsent_);
}

Awaitable<Sent> Connection::flush() {
  if (!behind_since_) {
    behind_since_ = timers_.now();
    behind_sent_ = sent_total_;
  }
  proxy::TimerWheel::Timer window(timers_, signal_);
  window.arm(rest_of_window());
  while (!gone_) {
    send_unsent();
    if (unsent_.empty() || gone_) break;
    if (window.fired()) {
      if (is_too_slow()) break;
      window.arm(rest_of_window());
    }
    wait_writable();
    co_await signal_.wait();
  }
  // What the system still holds for it is not with the client yet.
  if (!gone_ && unacknowledged() == 0) behind_since_.reset();
  co_return gone_ ? Sent::kGone : Sent::kAll;
}

std::chrono::milliseconds Connection::rest_of_window() const {
  const auto end = *behind_since_ + write_timeout_;
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - timers_.now());
  return std::max(rest, std::chrono::milliseconds(0));
}

// At the end of a window: the next one begins unless the client took too little in this one.
bool Connection::is_too_slow() {
  const auto least = static_cast<uint64_t>(write_timeout_.count()) * kLeastBytesPerSecond / 1000;
  if (sent_total_ - behind_sent_ < std::max<uint64_t>(least, 1)) {
    gone_ = too_slow_ = true;
    return true;
  }
  behind_since_ = timers_.now();
  behind_sent_ = sent_total_;
  return false;
}

// Bytes that the client's system has not confirmed.
int Connection::unacknowledged() {
  int bytes = 0;
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
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

void Connection::set_ending(Ending ending) {
  const ::linger reset{.l_onoff = ending == Ending::kReset ? 1 : 0, .l_linger = 0};
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

Awaitable<void> Connection::hand_over() {
  proxy::TimerWheel::Timer patience(timers_, signal_);
  proxy::TimerWheel::Timer again(timers_, signal_);
  patience.arm(kHandOver);
  while (!gone_ && !patience.fired() && unacknowledged() > 0) {
    again.arm(proxy::TimerWheel::kTick);
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
  boost::system::error_code ignored;
  std::ignore = socket_.close(ignored);
}

}  // namespace penstock::http
