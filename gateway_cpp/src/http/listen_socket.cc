#include "http/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

namespace penstock::http {

namespace {

constexpr int kBacklog = 4096;
constexpr uint64_t kOwnDescriptors = 128;  // logs, event loops, the head, libraries
// Of what waits unsent in the kernel for a slow client; set where it listens, inherited by all.
constexpr int kUnsentInKernel = 128 * 1024;
constexpr int kKeepaliveIdle = 30;  // seconds
constexpr int kKeepaliveInterval = 10;
constexpr int kKeepaliveProbes = 3;

enum class Sharing : uint8_t { kAlone, kByPort };

struct Resolved {
  sockaddr_storage address{};
  socklen_t size = 0;
};

base::Result<Resolved> resolve(std::string_view flag, const base::Address& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int failed = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return base::make_error(base::Kind::kConfig, std::string(flag) + ": the host '" + address.host +
                                                     "' is not known (" + ::gai_strerror(failed) +
                                                     "); name an address of this machine");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  Resolved resolved;
  std::memcpy(&resolved.address, found->ai_addr, found->ai_addrlen);
  resolved.size = found->ai_addrlen;
  return resolved;
}

int bound_socket(const Resolved& where, Sharing sharing) {
  const int fd = ::socket(where.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (sharing == Sharing::kByPort) {
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentInKernel, sizeof kUnsentInKernel);
  // A client whose machine is gone says nothing: its engine's slot is not held for hours.
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdle, sizeof kKeepaliveIdle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveInterval, sizeof kKeepaliveInterval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof kKeepaliveProbes);
  const auto* address = reinterpret_cast<const sockaddr*>(&where.address);
  if (::bind(fd, address, where.size) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

base::Result<base::Address> claim_address(std::string_view flag, const base::Address& wanted,
                                          Claim claim) {
  auto where = resolve(flag, wanted);
  if (!where) return where.error();
  const auto sharing = claim == Claim::kAlone ? Sharing::kAlone : Sharing::kByPort;
  const int fd = bound_socket(*where, sharing);
  if (fd < 0) {
    const std::string other = "pass another " + std::string(flag);
    const std::string reason = errno == EADDRINUSE
                                   ? "another process listens there; stop it, or " + other
                                   : std::string(std::strerror(errno)) + "; " + other;
    return base::make_error(base::Kind::kConfig,
                            "cannot listen on " + wanted.text() + ": " + reason);
  }
  base::Address claimed{wanted.host, port_of(fd)};
  ::close(fd);
  return claimed;
}

int listen_on(const base::Address& address) {
  const auto where = resolve("--listen", address);
  return where ? bound_socket(*where, Sharing::kByPort) : -1;
}

uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<uint64_t>::max();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

uint32_t connection_limit(uint32_t wanted, uint64_t descriptors, unsigned threads,
                          size_t replicas) {
  const uint64_t own = kOwnDescriptors + uint64_t{threads + 1} * replicas;
  const uint64_t left = descriptors - std::min(own, descriptors / 2);
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, left));
}

}  // namespace penstock::http
