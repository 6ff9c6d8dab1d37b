#include "admission/fingerprint.h"

#include <openssl/evp.h>

#include <memory>
#include <new>

namespace penstock::admission {

std::string Fingerprint::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

Fingerprint fingerprint_of(std::string_view deployment_uid, std::string_view path,
                           std::string_view body) {
  constexpr std::string_view kNul("\0", 1);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest(EVP_MD_CTX_new(),
                                                                       &EVP_MD_CTX_free);
  Fingerprint fingerprint;
  bool good = digest && EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1;
  for (const std::string_view part : {deployment_uid, kNul, path, kNul, body}) {
    good = good && EVP_DigestUpdate(digest.get(), part.data(), part.size()) == 1;
  }
  // The library fails only for want of memory.
  if (!good || EVP_DigestFinal_ex(digest.get(), fingerprint.bytes.data(), nullptr) != 1) {
    throw std::bad_alloc();
  }
  return fingerprint;
}

}  // namespace penstock::admission
