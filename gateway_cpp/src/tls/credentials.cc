#include "tls/credentials.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_text.h"
#include "tls/openssl.h"

namespace penstock::tls {

namespace {

// Forward secret and authenticated, with keys of either kind; those of TLS 1.3 all are.
constexpr const char* kCiphersOfTls12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

base::Error wrong(std::string_view flag, const std::string& path, const std::string& what) {
  return base::make_error(base::Kind::kConfig, std::string(flag) + ": '" + path + "' " + what);
}

base::Error wrong_certificate(const CredentialsFiles& files, const std::string& what) {
  return wrong("--tls-cert", files.certificate, what);
}

base::Error wrong_key(const CredentialsFiles& files, const std::string& what) {
  return wrong("--tls-key", files.key, what);
}

// Empty if it can be read.
std::string why_unreadable(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || ::access(path.c_str(), R_OK) != 0) {
    return std::string("cannot be read: ") + std::strerror(errno);
  }
  return S_ISREG(facts.st_mode) ? "" : "is no file";
}

// Empty if not everybody on this machine can use it. A group may: it is how a key is shared with
// those who renew it.
std::string why_exposed(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || (facts.st_mode & S_IRWXO) == 0) return {};
  std::array<char, 8> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.st_mode & 07777U);
  return "has mode " + std::string(mode.data()) +
         ", so that every user of this machine can use it; `chmod 600 " + path +
         "`, and have the key made anew if one may have read it";
}

Bio bio_over(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Asked only for a key that is encrypted.
int note_that_it_asks(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

base::MaybeError take_key(SSL_CTX* context, const CredentialsFiles& files) {
  if (const auto why = why_unreadable(files.key); !why.empty()) return wrong_key(files, why);
  if (const auto why = why_exposed(files.key); !why.empty()) return wrong_key(files, why);
  const auto text = base::read_file(files.key);
  if (!text) return wrong_key(files, "is larger than a key");
  const Bio bio = bio_over(*text);
  bool encrypted = false;
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &note_that_it_asks, &encrypted));
  if (encrypted) {
    return wrong_key(files,
                     "is encrypted, and nobody is there to give its passphrase; `openssl pkey -in "
                     "OLD -out NEW` writes it without one");
  }
  if (!key) {
    return wrong_key(files,
                     "holds no private key in PEM (-----BEGIN PRIVATE KEY-----): " + take_reason());
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) == 1) return std::nullopt;
  const std::string reason = take_reason();
  if (reason.find("mismatch") == std::string::npos) {
    return wrong_key(files, "cannot be used: " + reason);
  }
  return wrong_key(files, "is not the key of the certificate in '" + files.certificate +
                              "'; give the two that were made together");
}

// The server's own first, then those above it, in the order of the file: clients want it so.
base::MaybeError take_certificates(SSL_CTX* context, const CredentialsFiles& files) {
  if (const auto why = why_unreadable(files.certificate); !why.empty()) {
    return wrong_certificate(files, why);
  }
  const auto text = base::read_file(files.certificate);
  if (!text) return wrong_certificate(files, "is larger than a certificate's chain");
  const Bio bio = bio_over(*text);
  int taken = 0;
  for (;; ++taken) {
    const Certificate next(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
    if (!next) break;
    const bool fits = taken == 0 ? SSL_CTX_use_certificate(context, next.get()) == 1
                                 : SSL_CTX_add1_chain_cert(context, next.get()) == 1;
    if (!fits) return wrong_certificate(files, "cannot be used: " + take_reason());
  }
  const bool at_the_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = take_reason();
  if (taken > 0 && at_the_end) return std::nullopt;
  if (taken == 0 && at_the_end) {
    return wrong_certificate(files, "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  }
  return wrong_certificate(
      files, "is damaged at its certificate " + std::to_string(taken + 1) + ": " + reason);
}

// Of what the client offers, in wire format. "http/1.0" is what curl says for it.
int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* /*none*/) {
  static constexpr std::string_view kSpoken = "\x08http/1.1\x08http/1.0";
  unsigned char* found = nullptr;
  const auto* spoken = reinterpret_cast<const unsigned char*>(kSpoken.data());
  if (SSL_select_next_proto(&found, size, spoken, kSpoken.size(), offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Context make_context() {
  Context context(SSL_CTX_new(TLS_server_method()));
  if (!context) return context;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), kCiphersOfTls12);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE |
                                         SSL_OP_PRIORITIZE_CHACHA);
  // Idle connections hold no buffers. And a call returns after each record, so that records
  // without a client's bytes can be counted.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  // Sessions are resumed by tickets, which the clients keep.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context.get(), &choose_protocol, nullptr);
  return context;
}

std::chrono::system_clock::time_point time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string name_of(const GENERAL_NAME* name) {
  if (name->type == GEN_DNS) return text_of(name->d.dNSName);
  if (name->type != GEN_IPADD) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(name->d.iPAddress) == 4 ? AF_INET : AF_INET6;
  ::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text.data(), text.size());
  return text.data();
}

std::string names_of(const X509* certificate) {
  std::string names;
  auto* listed = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(listed); ++i) {
    const std::string name = name_of(sk_GENERAL_NAME_value(listed, i));
    if (!name.empty()) names.append(names.empty() ? "" : ", ").append(name);
  }
  GENERAL_NAMES_free(listed);
  return names;
}

}  // namespace

base::Result<std::shared_ptr<const Credentials>> Credentials::load(const CredentialsFiles& files) {
  const auto stamps = files.stamps();
  ERR_clear_error();
  Context context = make_context();
  if (!context) {
    return base::make_error(base::Kind::kConfig, "TLS cannot be set up: " + take_reason());
  }
  if (auto failed = take_certificates(context.get(), files)) return *failed;
  if (auto failed = take_key(context.get(), files)) return *failed;
  const X509* own = SSL_CTX_get0_certificate(context.get());
  Facts facts{.names = names_of(own),
              .not_before = time_of(X509_get0_notBefore(own)),
              .not_after = time_of(X509_get0_notAfter(own))};
  return std::shared_ptr<const Credentials>(
      new Credentials(context.release(), std::move(facts), stamps));
}

Credentials::~Credentials() { SSL_CTX_free(context_); }

}  // namespace penstock::tls
