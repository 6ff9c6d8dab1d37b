// The gateway process: reads its flags, serves, drains.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "base/config.h"
#include "gateway.h"
#include "http/listen_socket.h"
#include "proxy/record_log.h"
#include "tls/credentials.h"

namespace penstock {
namespace {

constexpr int kCutShort = 1;  // requests were running at the drain's deadline, or at SIGQUIT
constexpr int kBadFlags = 2;
constexpr int kPortTaken = 3;

int say_error(const std::string& message, int exit_code) {
  std::cerr << "penstock-gateway: error: " << message << '\n';
  return exit_code;
}

base::Result<std::shared_ptr<const tls::Credentials>> load_credentials(
    const base::GatewayConfig& config) {
  if (config.tls_cert.empty()) return std::shared_ptr<const tls::Credentials>();
  return tls::Credentials::load({config.tls_cert, config.tls_key});
}

int run(const base::GatewayConfig& config) {
  const auto credentials = load_credentials(config);
  if (!credentials) return say_error(credentials.error().message, kBadFlags);
  const auto claim = config.share_port ? http::Claim::kBesideOthers : http::Claim::kAlone;
  const auto address = http::claim_address("--listen", config.listen, claim);
  if (!address) return say_error(address.error().message, kPortTaken);
  Gateway gateway(config, *address, *credentials);
  if (const auto why = gateway.listen(); !why.empty()) return say_error(why, kPortTaken);
  gateway.start();
  gateway.wait_for_signal();
  gateway.stop_accepting();
  if (!gateway.wait_until_idle()) gateway.end_what_runs();
  gateway.stop();
  return gateway.cut_requests() ? kCutShort : EXIT_SUCCESS;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the gateway listens to it
  const auto config = base::parse_flags(argc, argv);
  if (!config) return say_error(config.error().message, kBadFlags);
  switch (config->action) {
    case base::Action::kHelp:
      std::cout << base::usage();
      return EXIT_SUCCESS;
    case base::Action::kVersion:
      std::cout << "penstock-gateway " << base::version() << '\n';
      return EXIT_SUCCESS;
    case base::Action::kLogFields:
      std::cout << proxy::log_field_table();
      return EXIT_SUCCESS;
    case base::Action::kRun:
      break;
  }
  return run(*config);
}
