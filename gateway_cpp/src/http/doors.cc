#include "http/doors.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "http/syntax.h"

namespace penstock::http {

namespace {

std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.rfind(':'));
}

// No page can make its own name lead here if the request names an address.
bool is_address(std::string_view host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const std::string text(host);
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

constexpr std::string_view kLocal = ".localhost";  // for names below it no name server is asked

bool is_below(std::string_view domain, std::string_view host) {
  return host.size() > domain.size() && same_text(host.substr(host.size() - domain.size()), domain);
}

base::Error wrong_host(std::string_view host) {
  return base::make_error(base::Kind::kWrongHost,
                          "This gateway does not serve the host `" + std::string(host) +
                              "`. Use an address or name of its machine, or start it with "
                              "--allow-host NAME.");
}

base::Error wrong_origin(std::string_view origin) {
  return base::make_error(base::Kind::kWrongOrigin,
                          "Pages of `" + std::string(origin.substr(0, 200)) +
                              "` may not call this gateway. Start it with --cors-origin ORIGIN if "
                              "they should.");
}

}  // namespace

Doors::Doors(const base::GatewayConfig& config, const MachineName& machine, Hosts hosts)
    : machine_(machine),
      names_{"localhost", config.listen.host},
      any_host_(hosts == Hosts::kAny),
      origins_(config.cors_origins) {
  for (const std::string& name : config.allow_hosts) {
    any_host_ |= name == "*";
    names_.emplace_back(is_authority(name) ? without_port(name) : name);
  }
}

std::optional<base::Error> Doors::refusal(const RequestHead& head) const {
  if (!head.host.empty() && !knows_host(without_port(head.host))) return wrong_host(head.host);
  if (!head.origin.empty() && !knows_origin(head)) return wrong_origin(head.origin);
  return std::nullopt;
}

bool Doors::knows_host(std::string_view host) const {
  if (any_host_ || is_address(host)) return true;
  if (host.ends_with('.')) host.remove_suffix(1);
  return is_below(kLocal, host) || machine_.is(host) ||
         std::any_of(names_.begin(), names_.end(), [host](const std::string& name) {
           return name.starts_with('.') ? is_below(name, host)
                                        : !name.empty() && same_text(name, host);
         });
}

bool Doors::knows_origin(const RequestHead& head) const {
  if (origins_.allow(head.origin)) return true;
  const size_t scheme = head.origin.find("://");
  if (scheme == std::string_view::npos) return false;
  return !head.host.empty() && same_text(head.origin.substr(scheme + 3), head.host);
}

Doors::Hosts hosts_of_status_port(const base::GatewayConfig& config) {
  return config.metrics.is_loopback() ? Doors::Hosts::kOwn : Doors::Hosts::kAny;
}

bool is_json(const RequestHead& head) {
  if (head.content_type == base::kJsonType) return true;
  if (head.content_type.empty()) return head.origin.empty();
  const std::string_view media = trim(head.content_type.substr(0, head.content_type.find(';')));
  constexpr std::string_view kSuffix = "+json";
  return same_text(media, base::kJsonType) ||
         (media.size() > kSuffix.size() &&
          same_text(media.substr(media.size() - kSuffix.size()), kSuffix));
}

}  // namespace penstock::http
