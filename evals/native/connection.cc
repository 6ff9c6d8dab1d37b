#include "connection.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>

namespace penstock::evals {
namespace {

uint64_t nanoseconds(Clock::duration duration) {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
}

std::string reason(std::string_view what, int error) {
  return std::string(what) + ": " + std::strerror(error);
}

}  // namespace

Connection::Connection(int epoll, uint32_t key, const Target& target, Tally& tally)
    : epoll_(epoll), key_(key), target_(target), tally_(tally) {}

void Connection::open() {
  socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  connected_ = false;
  if (socket_.get() < 0) {
    ++tally_.counts.failed_requests;
    tally_.note_problem(reason("no socket", errno));
    return;
  }
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // The result comes with the first readiness, as SO_ERROR.
  std::ignore = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&target_.address),
                          sizeof target_.address);
  watch(EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
}

void Connection::on_ready(uint32_t epoll_events) {
  const int socket = socket_.get();
  if (!connected_ || (epoll_events & EPOLLOUT)) on_writable();
  const bool same = connected_ && socket == socket_.get();
  if (same && (epoll_events & (EPOLLIN | EPOLLHUP | EPOLLERR))) on_readable();
}

Clock::duration Connection::silence(Clock::time_point now) const {
  return connected_ ? now - (events_ > 0 ? last_event_ : asked_) : Clock::duration::zero();
}

void Connection::watch(int operation, uint32_t epoll_events) {
  epoll_event interest{};
  interest.events = epoll_events;
  interest.data.u32 = key_;
  ::epoll_ctl(epoll_, operation, socket_.get(), &interest);
}

void Connection::on_writable() {
  if (connected_) {
    send_rest();
    return;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    fail(&Counts::failed_requests, reason("cannot connect", error));
    return;
  }
  connected_ = true;
  watch(EPOLL_CTL_MOD, EPOLLIN);
  begin_request();
}

void Connection::begin_request() {
  reader_.reset();
  decoder_.reset();
  done_mark_ = error_seen_ = false;
  events_ = 0;
  sent_ = 0;
  asked_ = Clock::now();
  send_rest();
}

void Connection::send_rest() {
  const std::string_view rest = std::string_view(target_.request).substr(sent_);
  const ssize_t taken = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (taken < 0 && errno != EAGAIN) {
    fail(&Counts::failed_requests, reason("cannot send", errno));
    return;
  }
  const bool resumed = sent_ > 0;
  sent_ += taken > 0 ? size_t(taken) : 0;
  if (sent_ < target_.request.size()) {
    watch(EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  } else if (resumed) {
    watch(EPOLL_CTL_MOD, EPOLLIN);
  }
}

void Connection::on_readable() {
  static thread_local std::array<char, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  now_ = Clock::now();
  if (got > 0) {
    take({buffer.data(), size_t(got)});
  } else if (got == 0) {
    on_end_of_input();
  } else if (errno != EAGAIN) {
    fail(reader_.has_head() ? &Counts::truncated : &Counts::failed_requests,
         reason("connection lost", errno));
  }
}

void Connection::take(std::string_view bytes) {
  const uint64_t events_before = events_;
  const size_t used = reader_.feed(bytes, [this](std::string_view piece) {
    if (!reader_.head().event_stream) return;
    decoder_.feed(piece, [this](std::string_view data) { take_event(data); });
  });
  if (events_ > events_before) {
    if (events_before > 0) tally_.gap_ns.add(nanoseconds(now_ - last_event_));
    last_event_ = now_;
  }
  if (reader_.state() == ResponseReader::State::kBroken) {
    fail(&Counts::failed_requests, "no HTTP: " + std::string(bytes.substr(0, 80)));
  } else if (reader_.state() == ResponseReader::State::kDone) {
    if (used < bytes.size()) {
      fail(&Counts::failed_requests, "bytes after the end of an answer");
    } else {
      finish_answer();
    }
  }
}

void Connection::take_event(std::string_view data) {
  switch (classify(data)) {
    case EventKind::kDone:
      done_mark_ = true;
      return;
    case EventKind::kError:
      error_seen_ = true;
      tally_.note_problem("error in the stream: " + std::string(data.substr(0, 300)));
      return;
    case EventKind::kData:
      break;
  }
  if (events_ == 0) {
    tally_.first_event_ns.add(nanoseconds(now_ - asked_));
    note_started();
  }
  ++events_;
  ++tally_.counts.events;
}

void Connection::finish_answer() {
  const ResponseHead& head = reader_.head();
  if (head.status != 200) {
    fail(&Counts::failed_requests, "status " + std::to_string(head.status));
  } else if (error_seen_) {
    fail(&Counts::stream_errors, "error in the stream");
  } else if (head.event_stream && !done_mark_) {
    fail(&Counts::truncated, "a stream ended without [DONE]");
  } else {
    ++tally_.counts.answers;
    tally_.answer_ns.add(nanoseconds(now_ - asked_));
    if (!head.event_stream) tally_.first_event_ns.add(nanoseconds(now_ - asked_));
    note_started();
    if (head.keep_alive) {
      begin_request();
    } else {
      open();
    }
  }
}

void Connection::on_end_of_input() {
  const bool any = reader_.has_head();
  reader_.end_of_input();
  if (reader_.state() == ResponseReader::State::kDone) {
    finish_answer();
  } else if (error_seen_) {
    fail(&Counts::stream_errors, "error in the stream");
  } else {
    fail(any ? &Counts::truncated : &Counts::failed_requests, "connection closed in an answer");
  }
}

void Connection::fail(uint64_t Counts::*counter, std::string what) {
  ++(tally_.counts.*counter);
  tally_.note_problem(std::move(what));
  open();
}

void Connection::note_started() {
  if (!started_) ++tally_.started;
  started_ = true;
}

}  // namespace penstock::evals
