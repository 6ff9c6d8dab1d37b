#include "http/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace penstock::http {

namespace {

constexpr std::size_t kMappedAt = 12;  // of an IPv6 address: the IPv4 one that it stands for

template <class Address>
Address as(const sockaddr_storage& peer) {
  Address address{};
  std::memcpy(&address, &peer, sizeof address);
  return address;
}

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* written = ::inet_ntop(family, address, text.data(), text.size());
  return written == nullptr ? std::string() : std::string(written);
}

}  // namespace

std::string peer_address(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return {};
  if (peer.ss_family == AF_INET) {
    const in_addr address = as<sockaddr_in>(peer).sin_addr;
    return text_of(AF_INET, &address);
  }
  if (peer.ss_family != AF_INET6) return {};
  const in6_addr address = as<sockaddr_in6>(peer).sin6_addr;
  const bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(&address) != 0;
  return is_ipv4 ? text_of(AF_INET, &address.s6_addr[kMappedAt]) : text_of(AF_INET6, &address);
}

}  // namespace penstock::http
