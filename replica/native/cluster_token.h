// The secret that the processes of one cluster share: each rpc carries it in its metadata.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

namespace penstock::replica {

class ClusterToken {
 public:
  // Empty: everybody is taken for one of the cluster.
  explicit ClusterToken(std::string token) : token_(std::move(token)) {}

  // OK, or why the caller gets nothing here. Takes the same time for every wrong token of one
  // length.
  grpc::Status check(const grpc::ServerContextBase& context) const;

 private:
  bool matches(std::string_view header) const;

  const std::string token_;
};

}  // namespace penstock::replica
