// Certificates and keys that a test makes for itself, and the files they lie in.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "control_plane/temporary_directory.h"
#include "tls/credentials.h"
#include "tls/openssl.h"

namespace penstock::test {

struct MadeCertificate {
  std::string certificate;  // PEM
  std::string key;
};

// For `name`, signed by itself, from an hour ago until `ends_in_hours` from now.
inline MadeCertificate made_certificate(const std::string& name, long ends_in_hours = 24) {
  constexpr long kHour = 3600;
  const tls::PrivateKey key(EVP_EC_gen("P-256"));
  const tls::Certificate made(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_set_version(made.get(), 2);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), ends_in_hours * kHour);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), subject);
  const std::string names = "DNS:" + name + ",IP:127.0.0.1";
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  X509_add_ext(made.get(), extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(made.get(), key.get(), EVP_sha256());
  const tls::Bio bio(BIO_new(BIO_s_mem()));
  const auto taken = [&bio] {
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    std::string pem(text, static_cast<size_t>(size));
    (void)BIO_reset(bio.get());
    return pem;
  };
  MadeCertificate pems;
  PEM_write_bio_X509(bio.get(), made.get());
  pems.certificate = taken();
  PEM_write_bio_PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  pems.key = taken();
  return pems;
}

// The two files of a gateway.
class CertificateFiles {
 public:
  explicit CertificateFiles(const MadeCertificate& made) { write(made); }

  void write(const MadeCertificate& made) {
    write_certificate(made.certificate);
    write_key(made.key);
  }
  void write_certificate(const std::string& text) { put(files().certificate, text, 0644); }
  void write_key(const std::string& text, mode_t mode = 0600) { put(files().key, text, mode); }
  tls::CredentialsFiles files() const {
    return {.certificate = folder_.path() / "cert.pem", .key = folder_.path() / "key.pem"};
  }

 private:
  // As those who renew certificates do: a new file takes the old one's place.
  static void put(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path + ".new") << text;
    ::chmod((path + ".new").c_str(), mode);
    ::rename((path + ".new").c_str(), path.c_str());
  }

  TemporaryDirectory folder_;
};

}  // namespace penstock::test
