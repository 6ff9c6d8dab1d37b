// A file descriptor with one owner, closed with it.
#pragma once

#include <unistd.h>

#include <utility>

namespace penstock::runtime {

class Descriptor {
 public:
  Descriptor() = default;
  // Owned from now on; negative: none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }

  // Negative where there is none.
  int number() const { return number_; }
  // Idempotent.
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace penstock::runtime
