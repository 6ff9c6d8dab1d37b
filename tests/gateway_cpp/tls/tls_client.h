// A client of TLS without a socket, by OpenSSL itself: believes any certificate.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "tls/openssl.h"

namespace penstock::test {

class TlsClient {
 public:
  explicit TlsClient(int version = TLS1_3_VERSION, std::string_view protocols = "\x08http/1.1")
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), 0);
    SSL_CTX_set_security_level(context_.get(), 0);  // for versions that are to be refused
    SSL_CTX_set_max_proto_version(context_.get(), version);
    ssl_ = SSL_new(context_.get());
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  ~TlsClient() { SSL_free(ssl_); }

  ssl_st* ssl() { return ssl_; }
  void take_in(std::string_view bytes) {
    BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size()));
  }
  // What it wants to send.
  std::string output() {
    char* text = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl_), &text);
    std::string bytes(text, static_cast<size_t>(size));
    (void)BIO_reset(SSL_get_wbio(ssl_));
    return bytes;
  }
  // One step; true once it is over.
  bool shake_hands() {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    if (result != 1 && SSL_get_error(ssl_, result) == SSL_ERROR_SSL) fault_ = tls::take_reason();
    return result == 1;
  }
  const std::string& fault() const { return fault_; }
  void write(std::string_view text) {
    if (!text.empty()) SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
  }
  // Everything that has come for it.
  std::string read() {
    std::string text;
    std::array<char, 20000> part{};
    ERR_clear_error();
    for (int n = 0; (n = SSL_read(ssl_, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<size_t>(n));
    }
    return text;
  }
  void say_goodbye() { SSL_shutdown(ssl_); }
  // Whether the server has said goodbye, as far as read() has come.
  bool was_told_goodbye() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }

 private:
  tls::Context context_;
  ssl_st* ssl_;
  std::string fault_;
};

}  // namespace penstock::test
