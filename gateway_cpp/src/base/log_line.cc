#include "base/log_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace penstock::base {
namespace {

constexpr std::array kLevelNames = {std::string_view("debug"), std::string_view("info"),
                                    std::string_view("warning"), std::string_view("error")};

// Not strftime, which takes a lock of the C library.
void write_stamp(LogRoom& room) {
  const auto day = std::chrono::floor<std::chrono::days>(room.second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(room.second - day);
  TextCursor to(room.stamp.data());
  to.put_padded<4>(static_cast<std::uint64_t>(static_cast<int>(date.year())));
  const auto part = [&to](char before, auto number) {
    to.put(before);
    to.put_padded<2>(static_cast<std::uint64_t>(number));
  };
  part('-', static_cast<unsigned>(date.month()));
  part('-', static_cast<unsigned>(date.day()));
  part('T', time.hours().count());
  part(':', time.minutes().count());
  part(':', time.seconds().count());
}

// "2026-01-31T12:00:00.123Z"
void put_timestamp(TextCursor& line, LogRoom& room, WallTime now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  if (second != room.second) {
    room.second = second;
    write_stamp(room);
  }
  line.put(std::string_view(room.stamp.data(), room.stamp.size()));
  line.put('.');
  const auto since = std::chrono::floor<std::chrono::milliseconds>(now - second);
  line.put_padded<3>(static_cast<std::uint64_t>(since.count()));
  line.put('Z');
}

}  // namespace

std::string_view name(Level level) { return kLevelNames[static_cast<std::size_t>(level)]; }

TextCursor LogLine::begun(LogRoom& room, WallTime now, Level level, std::string_view message) {
  constexpr std::size_t kFrame = 100;  // time, level, and the marks about them
  TextCursor to(room.text.data());
  const std::size_t most = kFrame + json_string_room(message);
  if (room.text.size() < most) to = grown(room.text, to, most);
  to.put(std::string_view(R"({"time":")"));
  put_timestamp(to, room, now);
  to.put(std::string_view(R"(","level":")"));
  to.put(name(level));
  to.put(std::string_view(R"(","message":)"));
  return put_json_string(to, message);
}

// Whole numbers throughout: the shortest text of a double takes ten times as long.
TextCursor LogLine::put_time(TextCursor to, std::chrono::microseconds time) {
  constexpr std::uint64_t kThousand = 1000;
  auto count = time.count();
  if (count < 0) {
    to.put('-');
    count = -count;
  }
  const auto us = static_cast<std::uint64_t>(count);
  const std::uint64_t ms = us / kThousand;
  ms < 10 ? to.put(static_cast<char>('0' + ms)) : to.put_number(ms);
  if (us % kThousand == 0) return to;
  to.put('.');
  to.put_padded<3>(us % kThousand);
  return to;
}

TextCursor LogLine::put_number(TextCursor to, double number) {
  std::array<char, kNumberRoom> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  to.put(std::isfinite(number) ? digits : "null");
  return to;
}

TextCursor LogLine::grown(std::string& room, TextCursor to, std::size_t bytes) {
  constexpr std::size_t kLeast = 2048;  // what nearly all lines need
  const auto written = static_cast<std::size_t>(to.at() - room.data());
  room.resize(std::max(kLeast, 2 * written + bytes));
  return TextCursor(room.data() + written);
}

}  // namespace penstock::base
