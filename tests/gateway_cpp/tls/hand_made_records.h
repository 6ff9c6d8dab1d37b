// Records of TLS 1.3 that OpenSSL's own client cannot be made to send, sealed with its keys.
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tls/tls_client.h"

namespace penstock::test {

// For a client that has sent nothing but its handshake, and sends nothing else.
class HandMadeRecords {
 public:
  // Before the handshake.
  explicit HandMadeRecords(TlsClient& client) {
    SSL_set_ciphersuites(client.ssl(), "TLS_AES_128_GCM_SHA256");
    SSL_set_app_data(client.ssl(), &secret_);
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(client.ssl()), &note_secret);
  }

  // Application data of `plain`, which may be empty.
  std::string record(std::string_view plain) {
    const std::string inner = std::string(plain) + '\x17';
    const size_t size = inner.size() + kTagBytes;
    std::string sealed{'\x17', '\x03', '\x03', static_cast<char>(size >> 8U),
                       static_cast<char>(size)};
    sealed += seal(inner, sealed);
    ++sequence_;
    return sealed;
  }

 private:
  static constexpr size_t kTagBytes = 16;
  static constexpr size_t kKeyBytes = 16;
  static constexpr size_t kIvBytes = 12;

  static void note_secret(const ssl_st* ssl, const char* line) {
    const std::string_view text(line);
    if (!text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
    const std::string_view digits = text.substr(text.rfind(' ') + 1);
    auto& secret = *static_cast<std::string*>(SSL_get_app_data(ssl));
    for (size_t i = 0; i < digits.size(); i += 2) {
      secret += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
    }
  }

  // HKDF-Expand-Label of RFC 8446, for what fits into one block.
  std::string expand(std::string_view label, size_t bytes) const {
    std::string info{'\0', static_cast<char>(bytes), static_cast<char>(6 + label.size())};
    info.append("tls13 ").append(label).append({'\0', '\x01'});
    std::array<unsigned char, EVP_MAX_MD_SIZE> made{};
    HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
         reinterpret_cast<const unsigned char*>(info.data()), info.size(), made.data(), nullptr);
    return {reinterpret_cast<const char*>(made.data()), bytes};
  }

  std::string seal(std::string_view inner, std::string_view header) const {
    const std::string key = expand("key", kKeyBytes);
    std::string nonce = expand("iv", kIvBytes);
    for (size_t i = 0; i < sizeof sequence_; ++i) {
      nonce[kIvBytes - 1 - i] ^= static_cast<char>(sequence_ >> (8 * i));
    }
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<const unsigned char*>(text.data());
    };
    std::string out(inner.size() + kTagBytes, '\0');
    auto* to = reinterpret_cast<unsigned char*>(out.data());
    int size = 0;
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, bytes(key), bytes(nonce));
    EVP_EncryptUpdate(context, nullptr, &size, bytes(header), static_cast<int>(header.size()));
    EVP_EncryptUpdate(context, to, &size, bytes(inner), static_cast<int>(inner.size()));
    EVP_EncryptFinal_ex(context, to + size, &size);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, to + inner.size());
    EVP_CIPHER_CTX_free(context);
    return out;
  }

  std::string secret_;
  uint64_t sequence_ = 0;
};

}  // namespace penstock::test
