#include "upstream/replica_connection.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <charconv>
#include <tuple>
#include <utility>

namespace penstock::upstream {

namespace {

constexpr size_t kReadBytes = 128UL * 1024;
constexpr int kReadsPerTurn = 8;  // then other sockets of the thread have theirs
constexpr size_t kWriteBytes = 256UL * 1024;
constexpr size_t kKeptUnsentBytes = 64UL * 1024;

// 0, where nobody listens, for what is no port.
uint16_t port_of(const std::string& text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

struct HostAndPort {
  std::string host;
  std::string port;
};

// "[::1]:80" is ::1 and 80.
HostAndPort split(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, ""};
  HostAndPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']') {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

}  // namespace

std::shared_ptr<ReplicaConnection> ReplicaConnection::start(asio::io_context& io,
                                                            const CallTarget& target, Owner& owner,
                                                            ConnectionPatience patience) {
  std::shared_ptr<ReplicaConnection> connection(new ReplicaConnection(io, target, owner, patience));
  connection->connect(target.authority);
  return connection;
}

ReplicaConnection::ReplicaConnection(asio::io_context& io, const CallTarget& target, Owner& owner,
                                     ConnectionPatience patience)
    : owner_(&owner),
      patience_(patience),
      socket_(io),
      resolver_(io),
      timer_(io),
      codec_(target,
             [this](std::string_view message) { return owner_ && owner_->on_message(message); }) {}

void ReplicaConnection::connect(const std::string& address) {
  hear_within(patience_.connect);
  const auto [host, port] = split(address);
  const auto on_connected = [self = shared_from_this()](ErrorCode ec, const auto& /*endpoint*/) {
    ec ? self->end("cannot connect: " + ec.message()) : self->connected();
  };
  // A thread of the resolver's is for names only.
  ErrorCode is_name;
  const auto literal = asio::ip::make_address(host, is_name);
  if (!is_name) {
    const std::array endpoints = {tcp::endpoint(literal, port_of(port))};
    return asio::async_connect(socket_, endpoints, on_connected);
  }
  resolver_.async_resolve(
      host, port,
      [self = shared_from_this(), on_connected](ErrorCode ec, const Resolver::results_type& found) {
        if (ec || self->owner_ == nullptr) {
          return self->end("its name cannot be resolved: " + ec.message());
        }
        self->hear_within(self->patience_.connect);
        asio::async_connect(self->socket_, found, on_connected);
      });
}

// A connection that the kernel has taken for a hung process is none.
void ReplicaConnection::hear_within(std::chrono::milliseconds patience) {
  timer_.expires_after(patience);
  timer_.async_wait([self = shared_from_this()](ErrorCode ec) {
    if (!ec && !self->answered_) self->end("it does not answer");
  });
}

void ReplicaConnection::connected() {
  if (owner_ == nullptr) return end("not wanted any more");
  ErrorCode failed;
  std::ignore = socket_.non_blocking(true, failed);
  if (!failed) std::ignore = socket_.set_option(tcp::no_delay(true), failed);
  if (failed) return end("its socket is unusable: " + failed.message());
  connected_ = true;
  wait_readable();
  write();
}

void ReplicaConnection::flush() {
  if (connected_) write();
}

void ReplicaConnection::close() {
  if (std::exchange(owner_, nullptr) == nullptr) return;
  codec_.cancel();
  flush();
  end("closed here");
}

void ReplicaConnection::wait_readable() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode ec) {
    if (!ec) self->read();
  });
}

ReplicaConnection::ErrorCode ReplicaConnection::take_in() {
  // Shared by the connections of a thread: a quiet one then costs no buffer.
  static thread_local std::array<char, kReadBytes> buffer;
  ErrorCode ec;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const size_t size = socket_.read_some(asio::buffer(buffer), ec);
    codec_.feed({buffer.data(), size});
    heard_ = heard_ || size != 0;
    if (ec || size < buffer.size()) break;
  }
  if (owner_ != nullptr) owner_->on_turn();
  return ec;
}

void ReplicaConnection::read() {
  const ErrorCode ec = take_in();
  if (ec && ec != asio::error::would_block) return end("the connection broke: " + ec.message());
  if (!socket_.is_open()) return;
  if (heard_ && !std::exchange(answered_, true)) watch_life();
  wait_readable();
  write();
}

// What came before the connection broke is still worth having.
void ReplicaConnection::read_last() {
  if (!socket_.is_open()) return;
  const ErrorCode ec = take_in();
  end("the connection broke: " + ec.message());
}

void ReplicaConnection::write() {
  bool lost = false;
  while (!waiting_writable_ && !lost && next_piece()) {
    ErrorCode ec;
    sent_ += socket_.write_some(asio::buffer(unsent_) + sent_, ec);
    if (ec == asio::error::would_block) {
      wait_writable();
    } else if (ec) {
      lost = true;
    }
  }
  // Whoever called here finds out about it later, as everybody else does.
  if (!lost && !codec_.over()) return;
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->read_last(); });
}

// False: there is nothing to send.
bool ReplicaConnection::next_piece() {
  if (sent_ < unsent_.size()) return true;
  sent_ = 0;
  given_before_ = codec_.given();
  unsent_.clear();
  if (unsent_.capacity() > kKeptUnsentBytes) unsent_.shrink_to_fit();
  codec_.produce(unsent_, kWriteBytes);
  return !unsent_.empty();
}

void ReplicaConnection::wait_writable() {
  waiting_writable_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](ErrorCode ec) {
    self->waiting_writable_ = false;
    if (!ec) self->write();
  });
}

void ReplicaConnection::watch_life() {
  timer_.expires_after(patience_.silence);
  timer_.async_wait([self = shared_from_this()](ErrorCode ec) {
    if (!ec) self->look_for_life();
  });
}

void ReplicaConnection::look_for_life() {
  // After a pause of our own the sign may lie in the socket.
  if (!heard_ && asked_) take_in();
  if (!socket_.is_open()) return;
  const bool silent = !std::exchange(heard_, false);
  const bool stands = stuck();
  if (stands) return end("it lives and does not read");
  if (silent && asked_) return end("it gives no sign of life");
  asked_ = silent;
  if (silent) codec_.ping();
  watch_life();
  write();
}

bool ReplicaConnection::stuck() {
  const bool moved = std::exchange(given_, codec_.given()) != codec_.given();
  return !moved && codec_.backlog() > patience_.backlog_bytes;
}

uint64_t ReplicaConnection::handed_over() const {
  return sent_ == 0 ? given_before_ : codec_.given();
}

// What the codec knows of the end is nearer to its cause than what the socket says.
void ReplicaConnection::end(std::string_view why) {
  ErrorCode ignored;
  std::ignore = socket_.close(ignored);
  resolver_.cancel();
  timer_.cancel();
  Owner* const owner = std::exchange(owner_, nullptr);
  if (owner != nullptr) owner->on_end(codec_.over() ? std::string_view(codec_.why_over()) : why);
  // Not before: the owner asks how much was sent. Not later: bodies hold their share of a budget,
  // and the connection may stay for long.
  codec_.drop();
}

}  // namespace penstock::upstream
