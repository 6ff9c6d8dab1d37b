#include "admission/key_hash.h"

#include <openssl/evp.h>

#include <new>

namespace penstock::admission {

struct KeyHasher::Digest {
  EVP_MD* kind = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  Digest() = default;
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  ~Digest() {
    EVP_MD_CTX_free(context);
    EVP_MD_free(kind);
  }
};

KeyHasher::KeyHasher() : digest_(std::make_unique<Digest>()) {}
KeyHasher::~KeyHasher() = default;

KeyHash KeyHasher::operator()(std::string_view key) {
  KeyHash hash{};
  // The library fails only for want of memory.
  if (digest_->kind == nullptr || digest_->context == nullptr ||
      EVP_DigestInit_ex2(digest_->context, digest_->kind, nullptr) != 1 ||
      EVP_DigestUpdate(digest_->context, key.data(), key.size()) != 1 ||
      EVP_DigestFinal_ex(digest_->context, hash.data(), nullptr) != 1) {
    throw std::bad_alloc();
  }
  return hash;
}

}  // namespace penstock::admission
