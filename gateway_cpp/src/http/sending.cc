// How a connection writes: at once or at the end of its thread's batch, what its client does not
// take at once, and when a client takes too little.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "http/connection.h"

namespace penstock::http {

namespace {

constexpr size_t kKeptUnsentBytes = 64UL * 1024;
constexpr size_t kMostPutOff = 4096;
constexpr size_t kSealedAtOnce = 64UL * 1024;
constexpr size_t kPartBytes = 64UL * 1024;

}  // namespace

std::string& Connection::empty_wire_memory() {
  static thread_local std::string memory;
  memory.clear();
  return memory;
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
    if (errno != EAGAIN && errno != EWOULDBLOCK) gone_ = true;
    return 0;
  }
}

Sent Connection::send(std::string_view bytes) {
  if (gone_) return Sent::kGone;
  return tls_ ? seal_and_put(bytes) : put(bytes);
}

// Sealing takes its time anyway, and a large piece is not copied.
bool Connection::may_put_off(size_t bytes) const {
  return !tls_ && !behind() && !gone_ && bytes <= kMostPutOff;
}

Sent Connection::send_soon(std::string_view bytes) {
  return may_put_off(bytes.size()) && sends_.keep(*this, bytes) ? Sent::kAll : send(bytes);
}

bool Connection::send_along(std::string_view before, std::string_view bytes,
                            std::string_view after) {
  const bool may_go_along = !tls_ && unsent_.empty() && !gone_ && !cut_short_;
  return may_go_along && kept_size() + bytes.size() <= kMostPutOff &&
         sends_.keep_more(*this, before, bytes, after);
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

}  // namespace penstock::http
