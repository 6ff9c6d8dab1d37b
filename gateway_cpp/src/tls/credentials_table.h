// The credentials that new connections get. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "tls/credentials.h"

namespace penstock::tls {

class CredentialsTable {
 public:
  explicit CredentialsTable(std::shared_ptr<const Credentials> first)
      : current_(std::move(first)) {}

  std::shared_ptr<const Credentials> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void replace(std::shared_ptr<const Credentials> next) {
    const std::lock_guard lock(mutex_);
    current_.swap(next);  // the old ones go after the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;
};

}  // namespace penstock::tls
