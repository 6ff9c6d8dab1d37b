#include "sse_source.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace penstock::evals {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

Descriptor periodic_timer(std::chrono::microseconds period) {
  Descriptor timer(checked(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timer"));
  itimerspec when{};
  when.it_interval.tv_sec = period.count() / 1'000'000;
  when.it_interval.tv_nsec = period.count() % 1'000'000 * 1'000;
  when.it_value = when.it_interval;
  checked(::timerfd_settime(timer.get(), 0, &when, nullptr), "timer");
  return timer;
}

}  // namespace

int SourceConnection::read_requests() {
  static thread_local std::array<char, 65536> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got > 0) return int(requests_.feed({buffer.data(), size_t(got)}));
  return got < 0 && errno == EAGAIN ? 0 : -1;
}

void SourceConnection::send(std::string_view bytes) {
  if (!unsent_.empty()) {
    unsent_ += bytes;
    bytes = unsent_;
  }
  const ssize_t taken = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const std::string rest(bytes.substr(taken > 0 ? size_t(taken) : 0));
  unsent_ = rest;
}

void SourceConnection::begin_endless(const Recording& recording) {
  send(std::string(Recording::stream_head()) + recording.endless(0));
  next_step_ = 1;
}

void SourceConnection::step(const Recording& recording) {
  if (next_step_ == kIdle || unsent_.size() > kMaxUnsent) return;
  send(recording.endless(next_step_++));
}

SseSource::SseSource(Recording recording, std::chrono::microseconds step)
    : recording_(std::move(recording)),
      step_(step),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll")),
      listener_(
          checked(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket")) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  checked(::bind(listener_.get(), generic, size), "bind");
  checked(::listen(listener_.get(), 4096), "listen");
  checked(::getsockname(listener_.get(), generic, &size), "getsockname");
  port_ = ntohs(address.sin_port);
  watch(EPOLL_CTL_ADD, listener_.get(), EPOLLIN);
  if (step_.count() > 0) {
    recording_.endless(1);  // refuses a recording that is too short, before anyone asks
    timer_ = periodic_timer(step_);
    watch(EPOLL_CTL_ADD, timer_.get(), EPOLLIN);
  }
}

void SseSource::run() {
  std::array<epoll_event, 512> ready;
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), ready.data(), int(ready.size()), -1);
    for (int i = 0; i < count; ++i) {
      on_ready(ready[size_t(i)].data.fd, ready[size_t(i)].events);
    }
  }
}

void SseSource::watch(int operation, int fd, uint32_t epoll_events) {
  epoll_event interest{};
  interest.events = epoll_events;
  interest.data.fd = fd;
  checked(::epoll_ctl(epoll_.get(), operation, fd, &interest), "epoll");
}

void SseSource::on_ready(int fd, uint32_t epoll_events) {
  if (fd == listener_.get()) {
    accept_all();
  } else if (fd == timer_.get()) {
    step_all();
  } else if (connections_.contains(fd)) {
    on_client(fd, epoll_events);
  }
}

void SseSource::on_client(int fd, uint32_t epoll_events) {
  SourceConnection& connection = *connections_.at(fd);
  const bool had_unsent = connection.has_unsent();
  if (epoll_events & EPOLLOUT) connection.send_rest();
  if (epoll_events & ~uint32_t{EPOLLOUT}) {
    const int requests = connection.read_requests();
    if (requests < 0) {
      connections_.erase(fd);
      return;
    }
    answer(connection, requests);
  }
  if (connection.has_unsent() != had_unsent) {
    watch(EPOLL_CTL_MOD, fd, had_unsent ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }
}

void SseSource::answer(SourceConnection& connection, int requests) {
  if (requests > 0 && step_.count() > 0) {
    connection.begin_endless(recording_);
  } else {
    for (int i = 0; i < requests; ++i) connection.send(recording_.whole());
  }
}

void SseSource::accept_all() {
  while (true) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    const int fd = socket.get();
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    connections_[fd] = std::make_unique<SourceConnection>(std::move(socket));
  }
}

void SseSource::step_all() {
  uint64_t expired = 0;
  if (::read(timer_.get(), &expired, sizeof expired) != sizeof expired) return;
  for (auto& [fd, connection] : connections_) connection->step(recording_);
}

}  // namespace penstock::evals
