#include "tls/credentials.h"

#include <gtest/gtest.h>

#include "tls/channel.h"
#include "tls/made_certificate.h"
#include "tls/tls_client.h"

namespace penstock::tls {
namespace {

using test::CertificateFiles;
using test::made_certificate;

std::string why_not(const CredentialsFiles& files) {
  const auto loaded = Credentials::load(files);
  return loaded ? "loaded" : loaded.error().message;
}

// An error of one flag about its file that says `what`.
void expect_error(const CertificateFiles& files, const std::string& flag, const std::string& what) {
  const std::string path = flag == "--tls-key" ? files.files().key : files.files().certificate;
  const std::string why = why_not(files.files());
  EXPECT_TRUE(why.starts_with(flag + ": '" + path + "' ")) << why;
  EXPECT_NE(why.find(what), std::string::npos) << why;
}

TEST(Credentials, KnowTheNamesAndTheEndOfTheCertificate) {
  const CertificateFiles files(made_certificate("llm.corp"));
  const auto loaded = Credentials::load(files.files());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ((*loaded)->facts().names, "llm.corp, 127.0.0.1");
  const auto left = (*loaded)->facts().not_after - std::chrono::system_clock::now();
  EXPECT_GT(left, std::chrono::hours(23));
  EXPECT_LE(left, std::chrono::hours(24));
}

TEST(Credentials, ShowTheWholeChain) {
  const auto own = made_certificate("own");
  CertificateFiles files(own);
  files.write_certificate(own.certificate + "some words\n" + made_certificate("above").certificate);
  const auto loaded = Credentials::load(files.files());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  test::TlsClient client;
  Channel channel(**loaded);
  client.shake_hands();
  const std::string hello = client.output();
  std::string_view in = hello;
  std::string out;
  channel.shake_hands(in, out);
  client.take_in(out);
  EXPECT_TRUE(client.shake_hands());
  EXPECT_EQ(sk_X509_num(SSL_get_peer_cert_chain(client.ssl())), 2);
}

TEST(Credentials, SayWhatIsWrongWithTheCertificate) {
  const auto made = made_certificate("a");
  CertificateFiles files(made);
  files.write_certificate("");
  expect_error(files, "--tls-cert", "holds no certificate in PEM");
  files.write_certificate(made.key);
  expect_error(files, "--tls-cert", "holds no certificate in PEM");
  files.write_certificate(made.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n");
  expect_error(files, "--tls-cert", "is damaged at its certificate 2");
  ::unlink(files.files().certificate.c_str());
  expect_error(files, "--tls-cert", "cannot be read: No such file");
  ::mkdir(files.files().certificate.c_str(), 0700);
  expect_error(files, "--tls-cert", "is no file");
  ::rmdir(files.files().certificate.c_str());
}

TEST(Credentials, SayWhatIsWrongWithTheKey) {
  const auto made = made_certificate("a");
  CertificateFiles files(made);
  files.write_key(made_certificate("a").key);
  expect_error(files, "--tls-key", "is not the key of the certificate in");
  files.write_key(made.certificate);
  expect_error(files, "--tls-key", "holds no private key in PEM");
  files.write_key(made.key, 0644);
  expect_error(files, "--tls-key", "has mode 0644, so that every user of this machine can use it");
  files.write_key(made.key, 0640);
  EXPECT_EQ(why_not(files.files()), "loaded") << "a group may share a key";
  ::unlink(files.files().key.c_str());
  expect_error(files, "--tls-key", "cannot be read: No such file");
}

TEST(Credentials, RefuseAKeyWithAPassphrase) {
  const auto made = made_certificate("a");
  CertificateFiles files(made);
  const Bio plain(BIO_new_mem_buf(made.key.data(), static_cast<int>(made.key.size())));
  const PrivateKey key(PEM_read_bio_PrivateKey(plain.get(), nullptr, nullptr, nullptr));
  const Bio sealed(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(sealed.get(), key.get(), EVP_aes_256_cbc(), "pass", 4, nullptr,
                                nullptr);
  char* text = nullptr;
  const long size = BIO_get_mem_data(sealed.get(), &text);
  files.write_key(std::string(text, static_cast<size_t>(size)));
  expect_error(files, "--tls-key", "is encrypted, and nobody is there to give its passphrase");
}

}  // namespace
}  // namespace penstock::tls
