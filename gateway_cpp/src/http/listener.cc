#include "http/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

namespace penstock::http {

namespace {

constexpr uint32_t kOverTheLimit = 128;  // clients that are told so, or wait for others' places
constexpr unsigned kTakenAtOnce = 64;    // before the clients that are there have their turn
constexpr std::chrono::milliseconds kRest{100};  // while not even a spare descriptor can be had

runtime::Descriptor open_spare() {
  return runtime::Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

asio::ip::tcp protocol_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

}  // namespace

Listener::Listener(asio::io_context& io, int socket, const std::atomic<uint32_t>& max_connections,
                   SessionGroup& sessions, Services& services, const Connection::Shared& shared,
                   base::Log& log, std::function<void()> clients_come)
    : io_(io),
      acceptor_(io.get_executor(), protocol_of(socket), socket),
      resting_(io.get_executor()),
      max_connections_(max_connections),
      sessions_(sessions),
      services_(services),
      shared_(shared),
      log_(log),
      clients_come_(std::move(clients_come)),
      spare_(open_spare()) {}

void Listener::stop() {
  if (!acceptor_.is_open()) return;
  accept_some(std::numeric_limits<unsigned>::max());
  resting_.cancel();
  boost::system::error_code ignored;
  std::ignore = acceptor_.close(ignored);
}

void Listener::wait() {
  acceptor_.async_wait(Acceptor::wait_read, [this](boost::system::error_code ec) {
    if (!ec) on_clients();
  });
}

void Listener::on_clients() {
  clients_come_();
  if (!acceptor_.is_open()) return;
  switch (accept_some(kTakenAtOnce)) {
    case Queue::kEmpty:
      return wait();
    case Queue::kMore:
      return asio::post(io_, [this] { on_clients(); });
    case Queue::kStuck:
      return rest();
  }
}

// The system says the same of a queue with clients and of an empty one: asking again at once would
// only burn the thread's time.
void Listener::rest() {
  resting_.expires_after(kRest);
  resting_.async_wait([this](boost::system::error_code ec) {
    if (!ec) on_clients();
  });
}

Listener::Queue Listener::accept_some(unsigned at_most) {
  for (unsigned taken = 0; taken < at_most; ++taken) {
    const int client =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      take(runtime::Descriptor(client));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Queue::kEmpty;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE) {
      const bool found = sessions_.make_room(Waiting::kOver) || sessions_.make_room(Waiting::kAny);
      if (found || refuse_without_descriptor()) continue;
    } else {
      log_.warning("accept failed", {{"errno", errno}});
    }
    return Queue::kStuck;
  }
  return Queue::kMore;
}

// A place at another thread is free only a little later, so that not many may be asked for at once.
bool Listener::find_room(uint32_t connections, uint32_t most) {
  if (connections < most) return true;
  const bool may_ask = connections < most + kOverTheLimit;
  for (const Waiting who : {Waiting::kLong, Waiting::kAny}) {
    if (sessions_.make_room(who)) return true;
    if (may_ask && sessions_.make_room_elsewhere(who)) return true;
  }
  return false;
}

// Counted before it is looked whether there is room: of two threads that take one each for the last
// place, one sees the other's.
void Listener::take(runtime::Descriptor client) {
  const uint32_t most = max_connections_.load(std::memory_order_relaxed);
  const uint32_t connections = services_.connections.fetch_add(1, std::memory_order_relaxed);
  const bool has_room = find_room(connections, most);
  const auto welcome = has_room ? Welcome::kYes : Welcome::kNo;
  if (welcome == Welcome::kNo) services_.metrics.connections_refused.add();
  const bool is_crowd = !has_room && connections >= most + kOverTheLimit;
  if (is_crowd && !sessions_.make_room(Waiting::kOver)) {
    services_.connections.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  const int on = 1;
  ::setsockopt(client.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sessions_.start(
      std::make_shared<Connection>(std::move(client), shared_, services_.config.write_timeout),
      welcome);
}

// False: there was nobody, or the spare descriptor went to somebody else.
bool Listener::refuse_without_descriptor() {
  spare_.close();
  runtime::Descriptor client(
      ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool was_there = client.number() >= 0;
  client.close();  // its number is the spare one's again
  spare_ = open_spare();
  if (was_there) services_.metrics.connections_refused.add();
  return was_there;
}

}  // namespace penstock::http
