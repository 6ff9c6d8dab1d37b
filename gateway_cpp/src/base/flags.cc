#include "base/flags.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <optional>
#include <vector>

#include "base/file_text.h"
#include "base/printable.h"

namespace penstock::base {
namespace {

using std::chrono::milliseconds;

// What a replica takes at most, whatever its gateways are told.
constexpr std::size_t kMostNested = 10'000;
constexpr std::size_t kMostValues = 500'000;

template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text) {
  T number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

// `text` as a whole number into `out`.
template <std::unsigned_integral T>
std::string set_number(T& out, std::string_view text, T least, T most, std::string_view what) {
  const auto value = parse_number<T>(text);
  if (!value || *value < least || *value > most) {
    return std::string(what) + " from " + std::to_string(least) + " to " + std::to_string(most);
  }
  out = *value;
  return {};
}

template <std::unsigned_integral T>
Setting number(T GatewayConfig::*field, T least, T most) {
  return {[=](GatewayConfig& config, std::string_view text) {
            return set_number(config.*field, text, least, most, "a whole number");
          },
          std::to_string(GatewayConfig().*field)};
}

// One whose default is computed when flags are parsed.
template <std::unsigned_integral T>
Setting number(T GatewayConfig::*field, T least, T most, std::string standing) {
  return {number(field, least, most).set, std::move(standing)};
}

Setting elements(std::size_t BodyElements::*field, std::size_t most) {
  return {[=](GatewayConfig& config, std::string_view text) {
            return set_number(config.body_elements.*field, text, std::size_t{1}, most,
                              "a whole number");
          },
          std::to_string(BodyElements().*field)};
}

Setting duration(milliseconds GatewayConfig::*field, std::uint32_t least) {
  return {[=](GatewayConfig& config, std::string_view text) {
            std::uint32_t ms = 0;
            std::string wanted = set_number(ms, text, least, 86'400'000U, "milliseconds");
            if (wanted.empty()) config.*field = milliseconds(ms);
            return wanted;
          },
          std::to_string((GatewayConfig().*field).count())};
}

Setting text(std::string GatewayConfig::*field) {
  return {[=](GatewayConfig& config, std::string_view value) {
            config.*field = value;
            return std::string();
          },
          {}};
}

Setting turned(bool GatewayConfig::*field, bool to) {
  return {[=](GatewayConfig& config, std::string_view /*none*/) {
            config.*field = to;
            return std::string();
          },
          {}};
}

std::string set_listen(GatewayConfig& config, std::string_view value) {
  auto address = parse_address(value);
  if (!address) return "host:port, such as 127.0.0.1:8080";
  config.listen = std::move(*address);
  return {};
}

std::string set_metrics(GatewayConfig& config, std::string_view value) {
  auto address = value.empty() ? Result<Address>(Address{}) : parse_address(value);
  if (!address) return "host:port, such as 127.0.0.1:8083, nor empty";
  config.metrics = std::move(*address);
  return {};
}

std::string add_allowed_host(GatewayConfig& config, std::string_view value) {
  const auto fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':' || c == '[' || c == ']';
  };
  const bool good = value == "*" || std::all_of(value.begin(), value.end(), fit);
  if (!good || value.empty()) return "a host name without port, or '*' for any";
  config.allow_hosts.emplace_back(value);
  return {};
}

std::string set_control(GatewayConfig& config, std::string_view value) {
  if (!value.empty() && !parse_address(value)) {
    return "host:port, such as 127.0.0.1:8082, nor empty";
  }
  config.control = value;
  return {};
}

std::string set_cluster_token(GatewayConfig& config, std::string_view value) {
  auto token = read_token(std::string(value));
  if (!token) return token.error().message;
  config.cluster_token = std::move(*token);
  return {};
}

std::string set_head_ca(GatewayConfig& config, std::string_view value) {
  auto certificates = read_file(std::string(value));
  if (!certificates || certificates->empty()) return "a file with certificates in PEM";
  config.head_ca = std::move(*certificates);
  return {};
}

// The id becomes part of a file name.
std::string set_id(GatewayConfig& config, std::string_view value) {
  const auto fit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (value.empty() || value.size() > 64 || value.front() == '.' ||
      !std::all_of(value.begin(), value.end(), fit)) {
    return "1 to 64 letters, digits, '-', '_' or '.', not starting with '.'";
  }
  config.id = value;
  return {};
}

// An origin as browsers send it: a path, be it a slash, would match none.
bool is_origin(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == 0 || scheme == std::string_view::npos) return text == "null";
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && host.find_first_of("/?# ,") == std::string_view::npos &&
         is_printable_ascii(text);
}

std::string add_cors_origin(GatewayConfig& config, std::string_view value) {
  if (value.empty()) return {};
  if (value != "*" && !is_origin(value)) {
    return "scheme://host[:port] without a path, such as https://chat.example, '*' for any page, "
           "nor empty";
  }
  config.cors_origins.emplace_back(value);
  return {};
}

std::string set_trace_sample(GatewayConfig& config, std::string_view value) {
  double share = -1;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, share);
  if (error != std::errc() || stop != end || !(share >= 0 && share <= 1)) return "from 0 to 1";
  config.trace_sample = share;
  return {};
}

std::string set_log_level(GatewayConfig& config, std::string_view value) {
  const auto level = parse_level(value);
  if (!level) return "debug, info, warning or error";
  config.log_level = *level;
  return {};
}

}  // namespace

std::span<const Flag> flags() {
  using C = GatewayConfig;
  constexpr std::size_t kGiB = 1U << 30U;
  constexpr std::size_t kTiB = kGiB << 10U;
  static const GatewayConfig kStanding;
  static const std::vector<Flag> kFlags = {
      {"listen",
       "HOST:PORT",
       "where clients connect; port 0: any free one",
       {set_listen, kStanding.listen.text()}},
      {"open", "",
       "serve whoever reaches it beyond loopback, too, until the first API key is made; without it "
       "requests without a key are answered 401 there",
       turned(&C::open, true)},
      {"tls-cert", "PATH", "serves HTTPS with this certificate and the chain behind it, in PEM",
       text(&C::tls_cert)},
      {"tls-key", "PATH", "its private key; both are read again when they change, and at SIGHUP",
       text(&C::tls_key)},
      {"share-port", "", "listen beside another gateway on the same port, to take its place",
       turned(&C::share_port, true)},
      {"metrics",
       "HOST:PORT",
       "serves /metrics, /livez and /readyz there; empty: nowhere",
       {set_metrics, {}}},
      {"control",
       "HOST:PORT",
       "the head's Routes service; without it, only the kept snapshot",
       {set_control, {}}},
      {"node", "NAME", "the machine it runs on: replicas there are preferred", text(&C::node)},
      {"zone", "NAME", "its zone: replicas there are preferred", text(&C::zone)},
      {"id", "NAME", "this gateway's name, one for each gateway of a head", {set_id, kStanding.id}},
      {"data-dir", "DIR", "keeps the last route snapshot there; without it, none is kept",
       text(&C::data_dir)},
      {"programs-dir", "DIR",
       "where the processes of router programs beside it say how to reach them",
       text(&C::programs_dir)},
      {"cluster-token-file",
       "PATH",
       "the token that head and replicas ask for, mode 0600; without it, none",
       {set_cluster_token, {}}},
      {"tls-ca",
       "PATH",
       "certificates that prove the head; without it, no TLS to it",
       {set_head_ca, {}}},
      {"threads", "N", "I/O threads", number(&C::threads, 1U, 256U, "half of the cores")},
      {"body-limit-bytes", "N", "largest request body",
       number(&C::body_limit_bytes, std::size_t{1}, kGiB)},
      {"body-messages", "N",
       "messages, items, texts or documents of one body; more are 400, as below",
       elements(&BodyElements::messages, kMostNested)},
      {"body-parts", "N", "content parts of these, and calls of tools",
       elements(&BodyElements::parts, kMostNested)},
      {"body-tools", "N", "tools of one body", elements(&BodyElements::tools, kMostNested)},
      {"body-values", "N", "JSON values of one body in all, such as token ids",
       elements(&BodyElements::values, kMostValues)},
      {"body-budget-bytes", "N",
       "request bodies held at once, over all connections; unary answers as much again",
       number(&C::body_budget_bytes, std::size_t{1U << 16U}, kTiB, "a quarter of the memory")},
      {"body-share-bytes", "N",
       "of these, held at once of one tenant's, or of one address's where there is no key",
       number(&C::body_share_bytes, std::size_t{1}, kTiB,
              "a quarter of the budget, one body at least")},
      {"body-least-rate", "N",
       "bytes of a request body that come each second, over ten of them, or it is refused; 0: any",
       number(&C::body_least_rate, std::size_t{0}, kGiB)},
      {"shadow-bytes", "N", "bodies and answers kept at once for shadows, until both were answered",
       number(&C::shadow_bytes, std::size_t{0}, kTiB)},
      {"resume-budget-bytes", "N",
       "tokens and large bodies kept at once for streams whose replicas may die; 0: none goes on",
       number(&C::resume_budget_bytes, std::size_t{0}, kTiB)},
      {"explain-budget-bytes", "N",
       "kept of what was decided about requests, a quarter of it of one tenant's at most; 0: "
       "nothing",
       number(&C::explain_budget_bytes, std::size_t{0}, kGiB)},
      {"header-limit-bytes", "N", "largest request line and headers together",
       number(&C::header_limit_bytes, std::size_t{1024}, std::size_t{1U << 20U})},
      {"stream-credit-bytes", "N", "answer bytes held for a slow client",
       number(&C::stream_credit_bytes, std::size_t{1024}, kGiB)},
      {"max-in-flight", "N", "requests at once in this gateway",
       number(&C::max_in_flight, 1U, 1'000'000U)},
      {"max-connections", "N", "client connections at once",
       number(&C::max_connections, 1U, 1'000'000U)},
      {"header-timeout-ms", "MS", "time for a request's line and headers",
       duration(&C::header_timeout, 1)},
      {"body-timeout-ms", "MS", "time for a request's body", duration(&C::body_timeout, 1)},
      {"idle-timeout-ms", "MS", "keep-alive: time between requests", duration(&C::idle_timeout, 1)},
      {"write-timeout-ms", "MS", "a client that reads nothing for so long is gone",
       duration(&C::write_timeout, 1)},
      {"heartbeat-ms", "MS", "SSE comment after so much silence; 0: none",
       duration(&C::heartbeat, 0)},
      {"first-event-deadline-ms", "MS", "time from send to the first event; 0: none",
       duration(&C::first_event_deadline, 0)},
      {"silence-ms", "MS", "a stream whose engine says nothing for so long ends; 0: none",
       duration(&C::silence, 0)},
      {"quarantine-ms", "MS", "a request that killed engines is refused for so long",
       duration(&C::quarantine, 0)},
      {"drain-ms", "MS", "what running streams get after SIGTERM", duration(&C::drain, 0)},
      {"handover-ms", "MS", "how long it listens on after SIGTERM for a second one",
       duration(&C::handover, 0)},
      {"trace-sample",
       "SHARE",
       "of the requests that bring no trace, those that become one, 0 to 1; needs a collector, "
       "which "
       "OTEL_EXPORTER_OTLP_ENDPOINT names",
       {set_trace_sample, "0"}},
      {"trace-slow-ms", "MS", "likewise, all that take so long; 0: none; failed ones always",
       duration(&C::trace_slow, 0)},
      {"cors-origin",
       "ORIGIN",
       "web pages of that origin may call; repeatable; '*': any page's",
       {add_cors_origin, {}}},
      {"allow-host",
       "NAME",
       "a further name in Host, \".corp\" all below it; repeatable; '*': any",
       {add_allowed_host, {}}},
      {"no-client-addresses", "", "leave the addresses of clients out of the log",
       turned(&C::client_addresses, false)},
      {"log-level",
       "LEVEL",
       "debug, info, warning or error",
       {set_log_level, std::string(name(kStanding.log_level))}},
  };
  return kFlags;
}

}  // namespace penstock::base
