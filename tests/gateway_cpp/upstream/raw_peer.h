// A replica's socket in this thread: what goes over it is up to the test, byte for byte.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <string>

#include "http2_peer.h"
#include "runtime/awaitable.h"

namespace penstock::upstream {

namespace asio = boost::asio;
using asio::ip::tcp;

// A replica's socket that reads and writes when the test says so.
class RawPeer {
 public:
  // window: what it takes before it has to give leave for more.
  explicit RawPeer(asio::io_context& io, uint32_t window = 1'000'000'000)
      : http2(window), acceptor_(io, {asio::ip::address_v4::loopback(), 0}) {
    acceptor_.non_blocking(true);
  }

  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }
  std::string address() const { return "127.0.0.1:" + port(); }

  bool accepted() {
    if (socket_) return true;
    boost::system::error_code none;
    tcp::socket socket = acceptor_.accept(none);
    if (none) return false;
    socket.non_blocking(true);
    socket_.emplace(std::move(socket));
    return true;
  }

  // One more connection has come, beside the one that is talked on.
  bool accepted_another() {
    boost::system::error_code none;
    const tcp::socket another = acceptor_.accept(none);
    return !none;
  }

  // Reads what came, answers what HTTP/2 wants answered, and writes what there is room for.
  void talk() {
    if (!accepted()) return;
    write();
    std::array<char, 65'536> buffer{};
    boost::system::error_code none;
    for (size_t size = 1; size != 0;) {
      size = socket_->read_some(asio::buffer(buffer), none);
      http2.feed({buffer.data(), size});
      if (reads) http2.consume();
      say(http2.take());
    }
    gone_ = gone_ || none == asio::error::eof || none == asio::error::connection_reset;
  }
  void say(const std::string& bytes) {
    unsent_ += bytes;
    write();
  }
  void hang_up() { socket_.reset(); }
  // The other side has closed.
  bool gone() const { return gone_; }

  Http2Peer http2;
  bool reads = true;  // gives leave for more than its window

 private:
  void write() {
    boost::system::error_code full;
    unsent_.erase(0, socket_->write_some(asio::buffer(unsent_), full));
  }

  tcp::acceptor acceptor_;
  std::optional<tcp::socket> socket_;
  std::string unsent_;
  bool gone_ = false;
};

}  // namespace penstock::upstream
