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

// A text of our own, of which it is known that nothing in it needs an escape.
struct PlainText {
  std::string_view text;
};

// Where lines are written, one after the other; and what many of them begin with.
struct LogRoom {
  std::string text;
  std::chrono::sys_seconds second = std::chrono::sys_seconds::min();  // whose text the stamp is
  std::array<char, 19> stamp{};                                       // "2026-01-31T12:00:00"
};

// Made where it is put together, and inlined: where it stands is a register then, since nothing
// that is called is told where the line itself is.
class LogLine {
 public:
  // Writes into `room`, which grows as need be and is its owner's, for the next line.
  LogLine(LogRoom& room, WallTime now, Level level, std::string_view message)
      : room_(room.text), at_(begun(room, now, level, message)), end_(end_of(room_)) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  // Keys stand in the line as they are: names of our own. They cost a few stores.
  [[gnu::always_inline]] void put(std::string_view key, const auto& value) {
    make_room(key.size() + kNumberRoom);
    at_.put(std::string_view(",\""));
    at_.put(key);
    at_.put(std::string_view("\":"));
    put_value(value);
  }

  // The line as far as it is; nothing is put after that.
  std::string_view end() {
    make_room(2);
    at_.put(std::string_view("}\n"));
    return {room_.data(), static_cast<std::size_t>(at_.at() - room_.data())};
  }

 private:
  static constexpr std::size_t kNumberRoom = 48;  // what a value takes that is no text, and marks

  [[gnu::always_inline]] void put_value(std::string_view text) {
    if (text.empty()) return at_.put(std::string_view("\"\""));
    make_room(json_string_room(text) + kNumberRoom);
    at_ = put_json_string(at_, text);
  }
  [[gnu::always_inline]] void put_value(PlainText plain) {
    make_room(plain.text.size() + kNumberRoom);
    at_.put('"');
    at_.put(plain.text);
    at_.put('"');
  }
  void put_value(std::same_as<bool> auto flag) {
    at_.put(flag ? std::string_view("true") : std::string_view("false"));
  }
  [[gnu::always_inline]] void put_value(Integer auto number) {
    if (number >= 0 && number < 10) return at_.put(static_cast<char>('0' + number));
    at_ = put_number(at_, number);
  }
  void put_value(double number) { at_ = put_number(at_, number); }
  [[gnu::always_inline]] void put_value(std::chrono::nanoseconds time) {
    at_ = put_time(at_, std::chrono::duration_cast<std::chrono::microseconds>(time));
  }

  [[gnu::always_inline]] void make_room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_.at()) >= bytes) return;
    at_ = grown(room_, at_, bytes);
    end_ = end_of(room_);
  }

  static char* end_of(std::string& room) { return room.data() + room.size(); }
  static TextCursor begun(LogRoom& room, WallTime now, Level level, std::string_view message);
  static TextCursor grown(std::string& room, TextCursor to, std::size_t bytes);
  static TextCursor put_number(TextCursor to, Integer auto number) {
    to.put_number(number);
    return to;
  }
  static TextCursor put_number(TextCursor to, double number);
  // In milliseconds, to the microsecond.
  static TextCursor put_time(TextCursor to, std::chrono::microseconds time);

  std::string& room_;
  TextCursor at_;
  char* end_;
};

}  // namespace penstock::base
