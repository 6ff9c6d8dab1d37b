// One line of the log, its fields written as they are put: a JSON object. Each request writes one
// of thirty fields, so that what a field costs is what its value costs.
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/text_cursor.h"

namespace penstock::base {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };
// "debug", "info", "warning", "error"
std::string_view name(Level level);

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// Where lines are written, one after the other; and what many of them begin with.
struct LogRoom {
  std::string text;
  std::chrono::sys_seconds second = std::chrono::sys_seconds::min();  // whose text the stamp is
  std::array<char, 19> stamp{};                                       // "2026-01-31T12:00:00"
};

class LogLine {
 public:
  // Writes into `room`, which grows as need be and is its owner's, for the next line.
  LogLine(LogRoom& room, WallTime now, Level level, std::string_view message);
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  // Keys stand in the line as they are: names of our own. Inlined, they cost a few stores.
  [[gnu::always_inline]] void put(std::string_view key, const auto& value) {
    make_room(key.size() + kNumberRoom);
    to_.put(std::string_view(",\""));
    to_.put(key);
    to_.put(std::string_view("\":"));
    put_value(value);
  }

  // The line as far as it is; nothing is put after that.
  std::string_view end();

 private:
  static constexpr std::size_t kNumberRoom = 48;  // what a value takes that is no text, and marks

  void put_value(std::string_view text) {
    if (text.empty()) return to_.put(std::string_view("\"\""));
    make_room(json_string_room(text) + kNumberRoom);
    put_json_string(to_, text);
  }
  void put_value(std::same_as<bool> auto flag) {
    to_.put(flag ? std::string_view("true") : std::string_view("false"));
  }
  void put_value(Integer auto number) {
    if (number >= 0 && number < 10) return to_.put(static_cast<char>('0' + number));
    to_.put_number(number);
  }
  void put_value(double number);
  // In milliseconds, to the microsecond.
  void put_value(std::chrono::microseconds time);
  void put_value(std::chrono::nanoseconds time) {
    put_value(std::chrono::duration_cast<std::chrono::microseconds>(time));
  }

  void make_room(std::size_t bytes) {
    if (static_cast<std::size_t>(room_.data() + room_.size() - to_.at()) < bytes) grow(bytes);
  }
  void grow(std::size_t bytes);

  std::string& room_;
  TextCursor to_;
};

}  // namespace penstock::base
