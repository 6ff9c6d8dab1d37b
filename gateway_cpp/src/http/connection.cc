#include "http/connection.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::http {

namespace {

constexpr size_t kReadBytes = 64UL * 1024;
constexpr size_t kKeptUnsentBytes = 64UL * 1024;
constexpr size_t kMostPutOff = 4096;
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kHandOver{2'000};
constexpr std::chrono::milliseconds kTimeToRead{150};
constexpr size_t kLingerBytes = 64UL * 1024 * 1024;
constexpr size_t kSealedAtOnce = 64UL * 1024;
constexpr size_t kPartBytes = 64UL * 1024;
// The end was told with what came before it and is not told again; a mark stops a read.
constexpr uint32_t kMoreBehindAShortRead = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

static_assert(Connection::kAheadBytes <= kReadBytes);

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Shared by the connections of a thread: an idle one then costs no buffer.
std::array<char, kReadBytes>& read_memory() {
  static thread_local std::array<char, kReadBytes> memory;
  return memory;
}

// What TLS has made of bytes that go out at once; likewise.
std::string& empty_wire_memory() {
  static thread_local std::string memory;
  memory.clear();
  return memory;
}

}  // namespace

Connection::Connection(runtime::Descriptor socket, const Shared& shared,
                       std::chrono::milliseconds write_timeout)
    : socket_(std::move(socket)),
      readiness_(shared.readiness),
      registration_(readiness_.watch(socket_.number(), *this)),
      timers_(shared.timers),
      sends_(shared.sends),
      write_timeout_(write_timeout),
      gone_(!registration_) {}

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
    if (would_block(errno)) {
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

size_t Connection::try_send(std::string_view wire_bytes) {
  for (;;) {
    const ssize_t sent =
        ::send(socket_.number(), wire_bytes.data(), wire_bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      writable_ = static_cast<size_t>(sent) == wire_bytes.size();
      sent_total_ += static_cast<uint64_t>(sent);
      return static_cast<size_t>(sent);
    }
    if (errno == EINTR) continue;
    writable_ = false;
    if (!would_block(errno)) gone_ = true;
    return 0;
  }
}

Sent Connection::send(std::string_view bytes) {
  if (gone_) return Sent::kGone;
  return tls_ ? seal_and_put(bytes) : put(bytes);
}

// Sealing takes its time anyway, and a large piece is not copied.
Sent Connection::send_soon(std::string_view bytes) {
  const bool can_wait = !tls_ && !behind() && !gone_ && bytes.size() <= kMostPutOff;
  return can_wait && sends_.keep(*this, bytes) ? Sent::kAll : send(bytes);
}

void Connection::send_kept(std::string_view bytes) {
  if (!gone_ && put(bytes) != Sent::kAll) signal_.raise();
}

Sent Connection::put(std::string_view wire_bytes) {
  if (has_kept()) unsent_ = sends_.take_back(*this);
  if (!unsent_.empty()) {
    unsent_.append(wire_bytes);
    return Sent::kBlocked;
  }
  if (wire_bytes.empty()) return Sent::kAll;
  const size_t sent = try_send(wire_bytes);
  if (gone_) return Sent::kGone;
  if (sent == wire_bytes.size()) return Sent::kAll;
  unsent_.assign(wire_bytes.substr(sent));
  return Sent::kBlocked;
}

// In parts, so that a large answer is not held twice.
Sent Connection::seal_and_put(std::string_view bytes) {
  Sent sent = Sent::kAll;
  while (!bytes.empty() && sent != Sent::kGone) {
    std::string& sealed = empty_wire_memory();
    gone_ = !tls_->seal(bytes.substr(0, kSealedAtOnce), sealed);
    sent = gone_ ? Sent::kGone : put(sealed);
    bytes.remove_prefix(std::min(bytes.size(), kSealedAtOnce));
  }
  return sent;
}

// Nothing of an answer is missing; where there is no TLS, there is nothing to say.
void Connection::say_goodbye() {
  if (!tls_) return;
  std::string& sealed = empty_wire_memory();
  tls_->say_goodbye(sealed);
  put(sealed);
}

void Connection::send_unsent() {
  if (has_kept()) unsent_ = sends_.take_back(*this);
  if (!writable_) return;
  unsent_begin_ += try_send(std::string_view(unsent_).substr(unsent_begin_));
  if (unsent_begin_ < unsent_.size()) return;
  unsent_.clear();
  unsent_begin_ = 0;
  if (unsent_.capacity() > kKeptUnsentBytes) std::string().swap(unsent_);
}

Awaitable<Sent> Connection::flush() {
  if (has_kept()) {  // whose client is not behind for that
    send_unsent();
    if (!gone_ && !behind()) co_return Sent::kAll;
  }
  if (!behind_since_) {
    behind_since_ = timers_.now();
    behind_sent_ = sent_total_;
  }
  runtime::TimerWheel::Timer window(timers_, signal_);
  window.arm(rest_of_window());
  while (!gone_) {
    // There may be room that the system does not tell of: less than it thinks worth a wake-up.
    if (window.fired()) writable_ = true;
    send_unsent();
    if (unsent_.empty() || gone_) break;
    if (window.fired()) {
      if (is_too_slow()) break;
      window.arm(rest_of_window());
    }
    waiting_writable_ = true;
    co_await signal_.wait();
  }
  // What the system still holds for it is not with the client yet.
  if (!gone_ && unacknowledged() == 0) behind_since_.reset();
  co_return gone_ ? Sent::kGone : Sent::kAll;
}

Awaitable<Sent> Connection::send_in_parts(std::string_view bytes) {
  in_parts_ = true;
  while (!bytes.empty() && !gone_) {
    const std::string_view part = bytes.substr(0, kPartBytes);
    bytes.remove_prefix(part.size());
    turn_bytes_ += part.size();
    if (send(part) == Sent::kBlocked) {
      co_await flush();
      rest();
    } else if (turn_is_over()) {
      co_await yield();
    }
  }
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
  return ::ioctl(socket_.number(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

Awaitable<void> Connection::flush(const runtime::TimerWheel::Timer& patience) {
  while (!gone_ && behind() && !patience.fired()) {
    send_unsent();
    if (unsent_.empty() || gone_) break;
    waiting_writable_ = true;
    co_await signal_.wait();
  }
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
