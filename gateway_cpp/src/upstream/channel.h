// gRPC channels to replicas, one TCP connection each.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace penstock::upstream {

// Two channels with different purposes never share a connection. Retries are off: they are ours.
// Silent network loss ends the calls within 15 s. No HTTP proxy that the environment names is used.
std::shared_ptr<grpc::Channel> connect_to_replica(const std::string& address,
                                                  const std::string& purpose);

}  // namespace penstock::upstream
