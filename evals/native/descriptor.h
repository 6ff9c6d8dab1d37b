// A file descriptor that closes itself. Movable, owned by one thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace penstock::evals {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// Raises the soft limit of open files to the hard one, and returns it.
uint64_t raise_descriptor_limit();

}  // namespace penstock::evals
