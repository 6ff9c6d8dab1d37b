#include "base/config.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <span>
#include <thread>

#include "base/flags.h"

namespace penstock::base {
namespace {

// What a body's memory may be larger than the body: the largest has room at least.
constexpr std::size_t kBodySlackBytes = 256U << 10U;

Error bad_flag(std::string_view flag, std::string_view value, std::string_view wanted) {
  return make_error(Kind::kConfig, "--" + std::string(flag) + ": '" + std::string(value) +
                                       "' is not " + std::string(wanted));
}

const Flag* find_flag(std::string_view name) {
  for (const Flag& flag : flags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

Action action_of(std::string_view word) {
  if (word == "--help" || word == "-h") return Action::kHelp;
  if (word == "--version") return Action::kVersion;
  return word == "--log-fields" ? Action::kLogFields : Action::kRun;
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
    if (const auto action = action_of(word); action != Action::kRun) {
      config.action = action;
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
    if (const std::string wanted = flag->setting.set(config, value); !wanted.empty()) {
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
    out += left + std::string(flag.help);
    const std::string& standing = flag.setting.standing;
    out += standing.empty() ? "\n" : " (" + standing + ")\n";
  }
  out += "  --help                          this text\n";
  out += "  --version                       the version\n";
  out += "  --log-fields                    what the log says of a request\n\n";
  out +=
      "SIGHUP: read --tls-cert and --tls-key again.\n"
      "SIGTERM, however often, and one SIGINT: drain; a second SIGINT or SIGQUIT: end at once.\n"
      "Exit codes: 0 stopped after a drain, 1 requests had to be cut short, 2 a flag is wrong,\n"
      "3 a port is taken.\n";
  return out;
}

std::string_view version() { return PENSTOCK_VERSION; }

}  // namespace penstock::base
