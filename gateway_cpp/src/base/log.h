// Structured log: one JSON object per line on a file descriptor. Any thread; main owns the one Log
// there is and passes it by reference. Lines wait some milliseconds for each other and are written
// together by a thread of the log's own, so that a request pays for no write and a slow disk holds
// nobody up; warnings and errors wait for nothing. A process that is killed loses the last of them.
//
//   log.info("request settled", {{"request_id", id}, {"status", 200}, {"seconds", 0.12}});
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/log_line.h"

namespace penstock::base {

// "debug", "info", "warning", "error"; nothing for any other text.
std::optional<Level> parse_level(std::string_view text);

// One key with its value. Keys stand in the line as they are: names of our own. Views must live
// until the log call returns. A duration is told in milliseconds, to the microsecond.
struct Field {
  using Value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool,
                             std::chrono::microseconds>;

  Field(std::string_view key, std::string_view text) : key(key), value(text) {}
  Field(std::string_view key, const char* text) : key(key), value(std::string_view(text)) {}
  Field(std::string_view key, const std::string& text) : key(key), value(std::string_view(text)) {}
  Field(std::string_view key, std::same_as<bool> auto flag) : key(key), value(flag) {}
  Field(std::string_view key, double number) : key(key), value(number) {}
  Field(std::string_view key, std::chrono::nanoseconds time)
      : key(key), value(std::chrono::duration_cast<std::chrono::microseconds>(time)) {}
  template <Integer T>
  Field(std::string_view key, T number) : key(key), value(widen(number)) {}

  std::string_view key;
  Value value;

 private:
  template <Integer T>
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
  Log(const Clock& clock, Level level, int fd = 2);
  // Writes what was logged before it.
  ~Log();
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

  // A line that `write` puts the fields of, for those of which there are many.
  template <class Write>
  void each(Level level, std::string_view message, const Write& write) {
    if (!enabled(level)) return;
    LogLine line(room(), clock_.wall_now(), level, message);
    write(line);
    hand_over(line.end(), level >= Level::kWarning);
  }

  bool enabled(Level level) const { return level >= level_.load(std::memory_order_relaxed); }

  // Returns when everything that was logged before has been written.
  void flush();

 private:
  // Lines wait in memory while a write lasts: at most so many bytes, then they are lost and
  // counted.
  static constexpr std::size_t kMostPending = std::size_t{1} << 20U;

  static LogRoom& room();
  void write(Level level, std::string_view message, Fields fields);
  void hand_over(std::string_view line, bool urgent);
  void run();
  // Both are called by the thread alone. The first tells of lines lost before, and returns those
  // lost now or not told of; the second returns those that could not be written.
  std::uint64_t write_out(std::string_view batch, std::uint64_t lost);
  std::uint64_t write_lines(std::string_view lines);

  const Clock& clock_;
  std::atomic<Level> level_;
  const int fd_;

  std::mutex mutex_;  // guards what follows, up to stopping_
  std::condition_variable wake_;
  std::condition_variable written_;
  std::string pending_;
  std::uint64_t lost_ = 0;
  std::uint64_t batches_ = 0;  // written
  bool idle_ = false;          // the thread waits for the first line
  bool urgent_ = false;
  bool stopping_ = false;

  bool torn_ = false;  // what was written ends within a line; the thread's own
  std::thread thread_;
};

}  // namespace penstock::base
