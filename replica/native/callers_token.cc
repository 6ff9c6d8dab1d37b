#include "callers_token.h"

#include <cstddef>

namespace penstock::replica {
namespace {

constexpr std::string_view kScheme = "Bearer ";

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

}  // namespace

grpc::Status CallersToken::check(const grpc::ServerContextBase& context) const {
  if (token_.empty()) return grpc::Status::OK;
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) {
    return {grpc::StatusCode::UNAUTHENTICATED,
            "no token: the caller needs the --cluster-token-file of this cluster"};
  }
  if (!matches({found->second.data(), found->second.size()})) {
    return {
        grpc::StatusCode::UNAUTHENTICATED,
        "another token: the caller's --cluster-token-file is not that of this replica's agent, or "
        "the caller is older than the agent"};
  }
  return grpc::Status::OK;
}

bool CallersToken::matches(std::string_view header) const {
  return header.starts_with(kScheme) &&
         equal_in_constant_time(header.substr(kScheme.size()), token_);
}

}  // namespace penstock::replica
