#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/file_text.h"
#include "base/printable.h"

namespace penstock::base {
namespace {

using std::chrono::milliseconds;

// What a body's memory may be larger than the body: the largest has room at least.
constexpr std::size_t kBodySlackBytes = 256U << 10U;

// What a replica takes at most, whatever its gateways are told.
constexpr std::size_t kMostNested = 10'000;
constexpr std::size_t kMostValues = 500'000;

Error bad_flag(std::string_view flag, std::string_view value, std::string_view wanted) {
  return make_error(Kind::kConfig, "--" + std::string(flag) + ": '" + std::string(value) +
                                       "' is not " + std::string(wanted));
}

template <std::unsigned_integral T>
std::optional<T> parse_number(std::string_view text) {
  T number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

// One flag: how its text gets into the config. The setter's answer is empty if all is well, else
// what the value should have been.
struct Flag {
  std::string_view name;
  std::string_view value_name;  // empty: it takes none
  std::string_view help;
  std::function<std::string(GatewayConfig&, std::string_view)> set;
};

template <std::unsigned_integral T>
auto number(T GatewayConfig::*field, T least, T most) {
  return [=](GatewayConfig& config, std::string_view text) -> std::string {
    const auto value = parse_number<T>(text);
    if (!value || *value < least || *value > most) {
      return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    }
    config.*field = *value;
    return {};
  };
}

auto elements(std::size_t BodyElements::*field, std::size_t most) {
  return [=](GatewayConfig& config, std::string_view text) -> std::string {
    const auto value = parse_number<std::size_t>(text);
    if (!value || *value < 1 || *value > most) {
      return "a whole number from 1 to " + std::to_string(most);
    }
    config.body_elements.*field = *value;
    return {};
  };
}

auto duration(milliseconds GatewayConfig::*field, std::uint32_t least) {
  return [=](GatewayConfig& config, std::string_view text) -> std::string {
    constexpr std::uint32_t kMost = 86'400'000;
    const auto value = parse_number<std::uint32_t>(text);
    if (!value || *value < least || *value > kMost) {
      return "milliseconds from " + std::to_string(least) + " to " + std::to_string(kMost);
    }
    config.*field = milliseconds(*value);
    return {};
  };
}

auto text(std::string GatewayConfig::*field) {
  return [=](GatewayConfig& config, std::string_view value) -> std::string {
    config.*field = value;
    return {};
  };
}

auto turned(bool GatewayConfig::*field, bool to) {
  return [=](GatewayConfig& config, std::string_view /*none*/) -> std::string {
    config.*field = to;
    return {};
  };
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

std::string set_log_level(GatewayConfig& config, std::string_view value) {
  const auto level = parse_level(value);
  if (!level) return "debug, info, warning or error";
  config.log_level = *level;
  return {};
}

std::span<const Flag> flags() {
  using C = GatewayConfig;
  constexpr std::size_t kGiB = 1U << 30U;
  static const std::vector<Flag> kFlags = {
      {"listen", "HOST:PORT", "where clients connect (127.0.0.1:8080); port 0: any free one",
       set_listen},
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
      {"metrics", "HOST:PORT", "serves /metrics, /livez and /readyz there; empty: nowhere",
       set_metrics},
      {"control", "HOST:PORT", "the head's Routes service; without it, only the kept snapshot",
       set_control},
      {"node", "NAME", "the machine it runs on: replicas there are preferred", text(&C::node)},
      {"zone", "NAME", "its zone: replicas there are preferred", text(&C::zone)},
      {"id", "NAME", "this gateway's name, one for each gateway of a head (gateway)", set_id},
      {"data-dir", "DIR", "keeps the last route snapshot there; without it, none is kept",
       text(&C::data_dir)},
      {"cluster-token-file", "PATH",
       "the token that head and replicas ask for, mode 0600; without it, none", set_cluster_token},
      {"tls-ca", "PATH", "certificates that prove the head; without it, no TLS to it", set_head_ca},
      {"threads", "N", "I/O threads (half of the cores)", number(&C::threads, 1U, 256U)},
      {"body-limit-bytes", "N", "largest request body (16777216)",
       number(&C::body_limit_bytes, std::size_t{1}, kGiB)},
      {"body-messages", "N",
       "messages, items, texts or documents of one body (2048); more are 400, as below",
       elements(&BodyElements::messages, kMostNested)},
      {"body-parts", "N", "content parts of these, and calls of tools (4096)",
       elements(&BodyElements::parts, kMostNested)},
      {"body-tools", "N", "tools of one body (256)", elements(&BodyElements::tools, kMostNested)},
      {"body-values", "N", "JSON values of one body in all, such as token ids (320000)",
       elements(&BodyElements::values, kMostValues)},
      {"body-budget-bytes", "N",
       "request bodies held at once, over all connections (a quarter of the memory); unary answers "
       "as much again",
       number(&C::body_budget_bytes, std::size_t{1U << 16U}, std::size_t{1} << 40U)},
      {"body-share-bytes", "N",
       "of these, held at once of one tenant's, or of one address's where there is no key (a "
       "quarter of the budget, one body at least)",
       number(&C::body_share_bytes, std::size_t{1}, std::size_t{1} << 40U)},
      {"body-least-rate", "N",
       "bytes of a request body that come each second, over ten of them, or it is refused (1024); "
       "0: any",
       number(&C::body_least_rate, std::size_t{0}, kGiB)},
      {"shadow-bytes", "N",
       "bodies and answers kept at once for shadows, until both were answered (67108864)",
       number(&C::shadow_bytes, std::size_t{0}, std::size_t{1} << 40U)},
      {"header-limit-bytes", "N", "largest request line and headers together (32768)",
       number(&C::header_limit_bytes, std::size_t{1024}, std::size_t{1U << 20U})},
      {"stream-credit-bytes", "N", "answer bytes held for a slow client (262144)",
       number(&C::stream_credit_bytes, std::size_t{1024}, kGiB)},
      {"max-in-flight", "N", "requests at once in this gateway (20000)",
       number(&C::max_in_flight, 1U, 1'000'000U)},
      {"max-connections", "N", "client connections at once (20000)",
       number(&C::max_connections, 1U, 1'000'000U)},
      {"header-timeout-ms", "MS", "time for a request's line and headers (10000)",
       duration(&C::header_timeout, 1)},
      {"body-timeout-ms", "MS", "time for a request's body (60000)", duration(&C::body_timeout, 1)},
      {"idle-timeout-ms", "MS", "keep-alive: time between requests (90000)",
       duration(&C::idle_timeout, 1)},
      {"write-timeout-ms", "MS", "a client that reads nothing for so long is gone (120000)",
       duration(&C::write_timeout, 1)},
      {"heartbeat-ms", "MS", "SSE comment after so much silence (15000); 0: none",
       duration(&C::heartbeat, 0)},
      {"first-event-deadline-ms", "MS", "time from send to the first event (600000); 0: none",
       duration(&C::first_event_deadline, 0)},
      {"silence-ms", "MS", "a stream whose engine says nothing for so long ends (600000); 0: none",
       duration(&C::silence, 0)},
      {"quarantine-ms", "MS", "a request that killed engines is refused for so long (600000)",
       duration(&C::quarantine, 0)},
      {"drain-ms", "MS", "what running streams get after SIGTERM (30000)", duration(&C::drain, 0)},
      {"handover-ms", "MS", "how long it listens on after SIGTERM for a second one (0)",
       duration(&C::handover, 0)},
      {"cors-origin", "ORIGIN", "web pages of that origin may call; repeatable; '*': any page's",
       add_cors_origin},
      {"allow-host", "NAME", "a further name in Host, \".corp\" all below it; repeatable; '*': any",
       add_allowed_host},
      {"no-client-addresses", "", "leave the addresses of clients out of the log",
       turned(&C::client_addresses, false)},
      {"log-level", "LEVEL", "debug, info, warning or error (info)", set_log_level},
  };
  return kFlags;
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : flags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

// Bytes that this process may use: the machine's memory, or less where its control group says so.
std::size_t memory_bytes() {
  const auto pages = static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const std::size_t machine = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::size_t group = 0;
  return file >> group && group > 0 ? std::min(machine, group) : machine;
}

// What belongs together is checked when all flags are read.
Result<GatewayConfig> validated(GatewayConfig config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    const bool has_cert = !config.tls_cert.empty();
    return make_error(Kind::kConfig, std::string(has_cert ? "--tls-cert" : "--tls-key") +
                                         " is given without " +
                                         (has_cert ? "--tls-key" : "--tls-cert") +
                                         ": HTTPS takes both, plain HTTP neither");
  }
  const std::size_t largest = config.body_limit_bytes + kBodySlackBytes;
  config.body_budget_bytes = std::max(config.body_budget_bytes, largest);
  if (config.body_share_bytes == 0) config.body_share_bytes = config.body_budget_bytes / 4;
  config.body_share_bytes = std::clamp(config.body_share_bytes, largest, config.body_budget_bytes);
  if (config.control.empty() && config.data_dir.empty()) {
    return make_error(Kind::kConfig,
                      "neither --control nor --data-dir is given: this gateway would never have a "
                      "route; name the head (--control 127.0.0.1:8082) or a directory with a "
                      "snapshot");
  }
  return config;
}

}  // namespace

Result<GatewayConfig> parse_flags(int argc, const char* const* argv) {
  GatewayConfig config;
  config.threads = std::max(1U, std::thread::hardware_concurrency() / 2);
  config.body_budget_bytes = memory_bytes() / 4;
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h" || word == "--version") {
      config.action = word == "--version" ? Action::kVersion : Action::kHelp;
      return config;
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Flag* flag = name.starts_with("--") ? find_flag(name.substr(2)) : nullptr;
    if (flag == nullptr) {
      return make_error(Kind::kConfig,
                        "'" + std::string(name) + "' is not a flag; --help lists them");
    }
    std::string_view value;
    if (flag->value_name.empty()) {
      if (equals != std::string_view::npos) {
        return make_error(Kind::kConfig, std::string(name) + " takes no value");
      }
    } else if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      return make_error(Kind::kConfig, std::string(name) + " needs a value");
    }
    if (const std::string wanted = flag->set(config, value); !wanted.empty()) {
      return bad_flag(flag->name, value, wanted);
    }
  }
  return validated(std::move(config));
}

std::string usage() {
  std::string out =
      "penstock-gateway: OpenAI-compatible HTTP in front of Penstock's replicas.\n\n"
      "Usage: penstock-gateway --control HOST:PORT [flags]\n\nFlags:\n";
  for (const Flag& flag : flags()) {
    std::string left = "  --" + std::string(flag.name) + " " + std::string(flag.value_name);
    left.resize(std::max<std::size_t>(left.size() + 2, 34), ' ');
    out += left + std::string(flag.help) + "\n";
  }
  out += "  --help                          this text\n";
  out += "  --version                       the version\n\n";
  out +=
      "SIGHUP: read --tls-cert and --tls-key again.\n"
      "SIGTERM, however often, and one SIGINT: drain; a second SIGINT or SIGQUIT: end at once.\n"
      "Exit codes: 0 stopped after a drain, 1 requests had to be cut short, 2 a flag is wrong,\n"
      "3 a port is taken.\n";
  return out;
}

std::string_view version() { return PENSTOCK_VERSION; }

}  // namespace penstock::base
