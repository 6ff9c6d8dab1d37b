#include "upstream/callers_token.h"

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <new>

#include "base/hex_text.h"

namespace penstock::upstream {

std::string callers_token(std::string_view cluster_token, std::string_view replica_id) {
  if (cluster_token.empty()) return {};
  const std::string purpose = "callers of replica\n" + std::string(replica_id);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  std::size_t size = 0;
  // The library fails only for want of memory.
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, cluster_token.data(),
                cluster_token.size(), reinterpret_cast<const unsigned char*>(purpose.data()),
                purpose.size(), mac.data(), mac.size(), &size) == nullptr) {
    throw std::bad_alloc();
  }
  std::string token;
  for (std::size_t i = 0; i < size; ++i) token.append(&base::kHexPairs[2UL * mac[i]], 2);
  return token;
}

}  // namespace penstock::upstream
