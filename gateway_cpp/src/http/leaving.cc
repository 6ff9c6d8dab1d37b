// How a connection finds out, while an answer is made, that its client has left.
#include <poll.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "http/connection.h"

namespace penstock::http {

namespace {

constexpr std::chrono::seconds kProbeInterval{1};
constexpr unsigned kInterimProbes = 4;  // Go's client takes more interim answers for an attack
constexpr size_t kReadAheadAtOnce = 4096;

}  // namespace

// One wait for readability at a time serves both a request that is awaited and a client that
// leaves. Behind a turn that is over it looks again once the others have had theirs.
void Connection::watch() {
  if (watching_ || gone_) return;
  watching_ = true;
  const auto look = [self = shared_from_this()](boost::system::error_code ec) {
    self->watching_ = false;
    if (!ec) self->on_readable();
  };
  if (turn_is_over()) {
    asio::post(socket_.get_executor(), [look] { look({}); });
  } else {
    socket_.async_wait(Socket::wait_read, look);
  }
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
  if (probe_.empty()) return lose();
  watch_for_reset();
  const bool interim = probe_.starts_with("HTTP/");
  if (unsent_.empty() && !in_parts_ && (!interim || interim_probes_ < kInterimProbes)) {
    if (interim) ++interim_probes_;
    if (send(probe_) == Sent::kGone) return lose();
  }
  in_a_while(&Connection::ask_whether_it_reads);
}

// Nothing more is read ahead: that the client has ended its side shows only to who asks for it.
void Connection::look_for_the_end() {
  if (room_ahead() > 0) return watch();
  if (has_ended_its_side()) return ask_whether_it_reads();
  watch_for_reset();
  in_a_while(&Connection::look_for_the_end);
}

bool Connection::has_ended_its_side() {
  pollfd state{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Connection::in_a_while(void (Connection::*what)()) {
  if (!probing_) probing_ = std::make_unique<ProbeTimer>(socket_.get_executor());
  probing_->expires_after(kProbeInterval);
  probing_->async_wait([self = shared_from_this(), what](boost::system::error_code ec) {
    if (!ec && self->answering_ && !self->gone_) (self.get()->*what)();
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

}  // namespace penstock::http
