// A Log that writes into a pipe, which the test reads.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/log.h"
#include "fixed_clock.h"

namespace penstock::test {

class LogCapture {
 public:
  explicit LogCapture(base::Level level = base::Level::kDebug) : log_(clock_, level, open_pipe()) {}
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    log_.flush();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  base::Log& log() { return log_; }

  // What was written since the last call.
  std::string text() {
    log_.flush();
    std::string out;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(ends_[0], part.data(), part.size())) > 0;) {
      out.append(part.data(), static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  int open_pipe() { return ::pipe2(ends_.data(), O_NONBLOCK | O_CLOEXEC) == 0 ? ends_[1] : -1; }

  std::array<int, 2> ends_{-1, -1};
  FixedClock clock_;
  base::Log log_;
};

}  // namespace penstock::test
