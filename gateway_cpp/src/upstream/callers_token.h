// What proves to one replica that we may call it, and opens nothing else: derived from the
// cluster's token, which no replica is to see. Heads and agents derive the same (common.proto).
#pragma once

#include <string>
#include <string_view>

namespace penstock::upstream {

// Empty without a cluster token.
std::string callers_token(std::string_view cluster_token, std::string_view replica_id);

}  // namespace penstock::upstream
