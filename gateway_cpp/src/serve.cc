#include "serve.h"

#include <cstdlib>
#include <memory>

#include "gateway.h"
#include "http/listen_socket.h"
#include "tls/credentials.h"

namespace penstock {
namespace {

base::Result<std::shared_ptr<const tls::Credentials>> load_credentials(
    const base::GatewayConfig& config) {
  if (config.tls_cert.empty()) return std::shared_ptr<const tls::Credentials>();
  return tls::Credentials::load({config.tls_cert, config.tls_key});
}

}  // namespace

Ended serve(const base::GatewayConfig& config) {
  const auto credentials = load_credentials(config);
  if (!credentials) return {kBadFlags, credentials.error().message};
  const auto claim = config.share_port ? http::Claim::kBesideOthers : http::Claim::kAlone;
  const auto address = http::claim_address("--listen", config.listen, claim);
  if (!address) return {kPortTaken, address.error().message};
  Gateway gateway(config, *address, *credentials);
  if (const auto why = gateway.listen(); !why.empty()) return {kPortTaken, why};
  gateway.start();
  gateway.wait_for_signal();
  gateway.stop_accepting();
  if (!gateway.wait_until_idle()) gateway.end_what_runs();
  gateway.stop();
  return {gateway.cut_requests() ? kCutShort : EXIT_SUCCESS, {}};
}

}  // namespace penstock
