#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <optional>

namespace penstock::base {
namespace {

bool is_ipv4_loopback(std::string_view host) {
  in_addr address{};
  const bool is_ipv4 = ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
  return is_ipv4 && (ntohl(address.s_addr) >> 24U) == IN_LOOPBACKNET;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return port;
}

}  // namespace

std::string Address::text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool Address::is_loopback() const {
  return host == "localhost" || host == "::1" || is_ipv4_loopback(host);
}

Result<Address> parse_address(std::string_view text) {
  const auto bad = [text] {
    return make_error(Kind::kConfig, "'" + std::string(text) + "' is not host:port");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const auto port = parse_port(text.substr(colon + 1));
  if (!host.empty() && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  if (host.empty() || !port) return bad();
  return Address{std::string(host), *port};
}

}  // namespace penstock::base
