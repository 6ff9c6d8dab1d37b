#include "http/network_of.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace penstock::http {

namespace ip = boost::asio::ip;

std::string network_of_peer(int socket) {
  ip::tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  if (::getpeername(socket, peer.data(), &size) != 0) return {};
  if (peer.data()->sa_family != AF_INET && peer.data()->sa_family != AF_INET6) return {};
  const ip::address address = peer.address();
  if (address.is_v4()) return address.to_string();
  if (address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  }
  constexpr size_t kNetworkBytes = 8;
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), 0);
  return ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace penstock::http
