// The way to the head: a channel, and what proves to it who we are.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace penstock::control_plane {

struct HeadChannel {
  std::shared_ptr<grpc::Channel> channel;  // null: there is no head
  std::string token;                       // of the cluster; empty: none is sent

  explicit operator bool() const { return channel != nullptr; }
  // Before each call.
  void authorize(grpc::ClientContext& context) const;
};

// With keepalive, so that silent network loss is seen within 20 s, and past any HTTP proxy that the
// environment names. An empty address: no channel. `ca`: certificates in PEM that may vouch for the
// head; empty: no TLS.
HeadChannel connect_to_head(const std::string& address, std::string token = {},
                            const std::string& ca = {});

}  // namespace penstock::control_plane
