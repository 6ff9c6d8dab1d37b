#include "control_plane/head_channel.h"

#include <utility>

namespace penstock::control_plane {
namespace {

constexpr int kKeepaliveMs = 10'000;
constexpr int kLargestMessage = 64 << 20;  // a snapshot of 100,000 replicas

grpc::ChannelArguments arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // What an attempt has until it is given up: a head on a busy machine takes its time to answer.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> credentials(const std::string& ca) {
  if (ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = ca;
  return grpc::SslCredentials(options);
}

}  // namespace

void HeadChannel::authorize(grpc::ClientContext& context) const {
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

HeadChannel connect_to_head(const std::string& address, std::string token, const std::string& ca) {
  if (address.empty()) return {};
  return {grpc::CreateCustomChannel(address, credentials(ca), arguments()), std::move(token)};
}

}  // namespace penstock::control_plane
