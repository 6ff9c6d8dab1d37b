// The secret that opens this replica and nothing else: each rpc carries it in its metadata.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

namespace penstock::replica {

class CallersToken {
 public:
  // Empty: everybody may call.
  explicit CallersToken(std::string token) : token_(std::move(token)) {}

  // OK, or why the caller gets nothing here. Takes the same time for every wrong token of one
  // length.
  grpc::Status check(const grpc::ServerContextBase& context) const;

 private:
  bool matches(std::string_view header) const;

  const std::string token_;
};

}  // namespace penstock::replica
