// What a connection hears of its socket, and how it finds out, while an answer is made, that its
// client has left.
#include <sys/epoll.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "http/connection.h"

namespace penstock::http {

namespace {

constexpr std::chrono::seconds kProbeInterval{1};
constexpr unsigned kInterimProbes = 4;  // Go's client takes more interim answers for an attack
constexpr size_t kReadAheadAtOnce = 4096;

}  // namespace

void Connection::on_ready(uint32_t events) {
  const auto self = shared_from_this();  // whoever hears of it may let go of it
  told_ |= events;
  const bool news = (events & ~static_cast<uint32_t>(EPOLLOUT)) != 0;
  if (news) readable_ = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    writable_ = true;
    if (std::exchange(waiting_writable_, false)) signal_.raise();
  }
  if (watching_for_reset_ && is_reset() && !gone_) lose();
  if (news) look();
}

// Serves both a request that is awaited and a client that leaves. What is there already is looked
// at once the others have had their turn.
void Connection::watch() {
  watching_ = true;
  if (readable_) look_later();
}

void Connection::look_later() {
  if (looking_later_ || gone_) return;
  looking_later_ = true;
  asio::post(readiness_.executor(), [self = shared_from_this()] {
    self->looking_later_ = false;
    self->look();
  });
}

void Connection::look() {
  if (!watching_ || gone_) return;
  watching_ = false;
  on_readable();
}

void Connection::on_readable() {
  rest();
  if (answering_) {
    read_ahead();
  } else {
    signal_.raise();
  }
}

// What comes during an answer is a later request, kept for its turn, or the client's end. Without
// reading it the end behind it would not be seen.
void Connection::read_ahead() {
  while (!gone_ && !turn_is_over()) {
    const size_t room = std::min(room_ahead(), kReadAheadAtOnce);
    if (room == 0) return look_for_the_end();
    const Part part = receive(room);
    switch (part.received) {
      case Received::kBytes:
        ahead_.append(part.bytes);
        break;
      case Received::kNothingYet:
        return watch();
      case Received::kEnd:
        return ask_whether_it_reads();
      case Received::kGoodbye:
      case Received::kBroken:
        return lose();
    }
  }
  watch();
}

// A record of TLS brings all of its bytes when it is whole.
size_t Connection::room_ahead() const {
  const size_t most = tls_ ? kAheadBytes - tls::Channel::kMostHeld : kAheadBytes;
  return most - std::min(most, ahead_.size());
}

// The client has ended its side. Asked again and again, since a proxy in between may take the first
// probe and learn only then that nobody is behind it.
void Connection::ask_whether_it_reads() {
  if (probe_.empty() || is_reset()) return lose();
  watching_for_reset_ = true;
  const bool interim = probe_.starts_with("HTTP/");
  if (!behind() && !in_parts_ && (!interim || interim_probes_ < kInterimProbes)) {
    if (interim) ++interim_probes_;
    if (send(probe_) == Sent::kGone) return lose();
  }
  in_a_while(&Connection::ask_whether_it_reads);
}

// Nothing more is read ahead: that the client has ended its side shows only to who asks for it.
void Connection::look_for_the_end() {
  if (room_ahead() > 0) return watch();
  if (has_ended_its_side()) return ask_whether_it_reads();
  watching_for_reset_ = true;
  in_a_while(&Connection::look_for_the_end);
}

bool Connection::has_ended_its_side() const {
  return (told_ & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
}

bool Connection::is_reset() const { return (told_ & (EPOLLHUP | EPOLLERR)) != 0; }

void Connection::in_a_while(void (Connection::*what)()) {
  if (!probing_) probing_ = std::make_unique<ProbeTimer>(readiness_.executor());
  probing_->expires_after(kProbeInterval);
  probing_->async_wait([self = shared_from_this(), what](boost::system::error_code ec) {
    if (!ec && self->answering_ && !self->gone_) (self.get()->*what)();
  });
}

void Connection::lose() {
  gone_ = true;
  signal_.raise();
}

}  // namespace penstock::http
