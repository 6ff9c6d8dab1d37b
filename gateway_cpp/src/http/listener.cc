#include "http/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <tuple>
#include <utility>

namespace penstock::http {

namespace {

constexpr uint32_t kRefusedAtOnce = 128;  // clients over the limit that are told why

int open_spare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

asio::ip::tcp protocol_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

}  // namespace

Listener::Listener(asio::io_context& io, int socket, uint32_t max_connections,
                   SessionGroup& sessions, Services& services, proxy::TimerWheel& timers,
                   base::Log& log)
    : io_(io),
      protocol_(protocol_of(socket)),
      acceptor_(io.get_executor(), protocol_, socket),
      max_connections_(max_connections),
      sessions_(sessions),
      services_(services),
      timers_(timers),
      log_(log),
      spare_(open_spare()) {}

Listener::~Listener() {
  if (spare_ >= 0) ::close(spare_);
}

void Listener::stop() {
  if (!acceptor_.is_open()) return;
  accept_all();
  boost::system::error_code ignored;
  std::ignore = acceptor_.close(ignored);
}

void Listener::wait() {
  acceptor_.async_wait(Acceptor::wait_read, [this](boost::system::error_code ec) {
    if (ec) return;
    accept_all();
    wait();
  });
}

void Listener::accept_all() {
  for (;;) {
    const int client =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      take(client);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    if (errno == EMFILE || errno == ENFILE) {
      refuse_without_descriptor();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      log_.warning("accept failed", {{"errno", errno}});
      return;
    }
  }
}

void Listener::take(int client) {
  const uint32_t connections = services_.state.connections.load(std::memory_order_relaxed);
  const auto welcome = connections < max_connections_ ? Welcome::kYes : Welcome::kNo;
  if (welcome == Welcome::kNo) services_.metrics.connections_refused.add();
  if (connections >= max_connections_ + kRefusedAtOnce) {
    ::close(client);
    return;
  }
  const int on = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  boost::system::error_code failed;
  Connection::Socket socket(io_.get_executor());
  std::ignore = socket.assign(protocol_, client, failed);
  if (failed) {
    ::close(client);
    return;
  }
  std::ignore = socket.non_blocking(true, failed);
  sessions_.start(
      std::make_shared<Connection>(std::move(socket), timers_, services_.config.write_timeout),
      welcome);
}

void Listener::refuse_without_descriptor() {
  if (spare_ >= 0) ::close(spare_);
  const int client =
      ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client >= 0) {
    services_.metrics.connections_refused.add();
    ::close(client);
  }
  spare_ = open_spare();
}

}  // namespace penstock::http
