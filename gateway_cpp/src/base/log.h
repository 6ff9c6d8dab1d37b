// Structured log: one JSON object per line on a file descriptor, written whole. Any thread; main
// owns the one Log there is and passes it by reference.
//
//   log.info("request settled", {{"request_id", id}, {"status", 200}, {"seconds", 0.12}});
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"

namespace penstock::base {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error"; nothing for any other text.
std::optional<Level> parse_level(std::string_view text);

// One key with its value. Views must live until the log call returns.
struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

  Field(std::string_view key, std::string_view text) : key(key), value(text) {}
  Field(std::string_view key, const char* text) : key(key), value(std::string_view(text)) {}
  Field(std::string_view key, const std::string& text) : key(key), value(std::string_view(text)) {}
  Field(std::string_view key, std::same_as<bool> auto flag) : key(key), value(flag) {}
  Field(std::string_view key, double number) : key(key), value(number) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Field(std::string_view key, T number)
      : key(key), value(widen(number)) {}

  std::string_view key;
  Value value;

 private:
  template <std::integral T>
  static Value widen(T number) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<std::int64_t>(number);
    } else {
      return static_cast<std::uint64_t>(number);
    }
  }
};

using Fields = std::initializer_list<Field>;

class Log {
 public:
  // Writes to `fd`, which stays the caller's; 2 is stderr.
  Log(const Clock& clock, Level level, int fd = 2) : clock_(clock), level_(level), fd_(fd) {}
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) {
    write(Level::kDebug, message, fields);
  }
  void info(std::string_view message, Fields fields = {}) { write(Level::kInfo, message, fields); }
  void warning(std::string_view message, Fields fields = {}) {
    write(Level::kWarning, message, fields);
  }
  void error(std::string_view message, Fields fields = {}) {
    write(Level::kError, message, fields);
  }

  bool enabled(Level level) const { return level >= level_.load(std::memory_order_relaxed); }

 private:
  void write(Level level, std::string_view message, Fields fields);

  const Clock& clock_;
  std::atomic<Level> level_;
  const int fd_;
  std::mutex mutex_;  // lines longer than a pipe's atomic write must not mix
};

}  // namespace penstock::base
