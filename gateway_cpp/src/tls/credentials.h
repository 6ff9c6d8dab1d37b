// The certificate chain and private key that the gateway shows its clients, and how it speaks TLS
// with them: 1.2 or later, HTTP/1.1, no renegotiation. Immutable and shared by all threads; a
// connection keeps those that it began with.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"
#include "tls/file_stamp.h"

// OpenSSL's: its headers stay in this folder's sources.
struct ssl_ctx_st;

namespace penstock::tls {

// Where they lie, in PEM. The certificate's file holds the chain too, the server's own first.
struct CredentialsFiles {
  std::string certificate;
  std::string key;

  // Which versions of the two lie there now.
  std::array<FileStamp, 2> stamps() const { return {stamp_of(certificate), stamp_of(key)}; }
};

class Credentials {
 public:
  // What a client may call the server by, and when.
  struct Facts {
    std::string names;  // "llm.corp, 10.0.0.7"
    std::chrono::system_clock::time_point not_before;
    std::chrono::system_clock::time_point not_after;
  };

  // An error names the flag and the file, what is wrong with it and what to do.
  static base::Result<std::shared_ptr<const Credentials>> load(const CredentialsFiles& files);

  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();

  const Facts& facts() const { return facts_; }
  // Of the files just before they were read.
  const std::array<FileStamp, 2>& stamps() const { return stamps_; }
  ssl_ctx_st* context() const { return context_; }

 private:
  Credentials(ssl_ctx_st* context, Facts facts, const std::array<FileStamp, 2>& stamps)
      : context_(context), facts_(std::move(facts)), stamps_(stamps) {}

  ssl_ctx_st* const context_;
  const Facts facts_;
  const std::array<FileStamp, 2> stamps_;
};

}  // namespace penstock::tls
