#include "http/peer_address.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace penstock::http {

namespace ip = boost::asio::ip;

std::string peer_address(int socket) {
  ip::tcp::endpoint peer;
  auto size = static_cast<socklen_t>(peer.capacity());
  if (::getpeername(socket, peer.data(), &size) != 0) return {};
  if (peer.data()->sa_family != AF_INET && peer.data()->sa_family != AF_INET6) return {};
  const ip::address address = peer.address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
}

std::string network_of(const std::string& address) {
  boost::system::error_code unreadable;
  const auto v6 = ip::make_address_v6(address, unreadable);
  if (unreadable) return address;
  constexpr size_t kNetworkBytes = 8;
  auto bytes = v6.to_bytes();
  std::fill(bytes.begin() + kNetworkBytes, bytes.end(), 0);
  return ip::make_address_v6(bytes).to_string() + "/64";
}

}  // namespace penstock::http
