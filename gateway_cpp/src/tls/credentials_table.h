// The credentials that new connections get. Any thread.
#pragma once

#include <memory>
#include <utility>

#include "base/published.h"
#include "tls/credentials.h"

namespace penstock::tls {

class CredentialsTable : public base::Published<Credentials> {
 public:
  using Published::Published;

  void replace(std::shared_ptr<const Credentials> next) { publish(std::move(next)); }
};

}  // namespace penstock::tls
