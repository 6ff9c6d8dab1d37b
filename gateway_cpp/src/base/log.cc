#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/json_text.h"
#include "base/text_cursor.h"

namespace penstock::base {
namespace {

constexpr std::array kLevelNames = {std::string_view("debug"), std::string_view("info"),
                                    std::string_view("warning"), std::string_view("error")};

constexpr std::size_t kMostKeptLine = 16UL * 1024;
constexpr std::string_view kLinesLost =
    "log lines were lost: writing them was too slow or failed, as on a full disk";
constexpr std::chrono::milliseconds kGather(2);  // how long lines wait for each other

constexpr std::size_t kNumberRoom = 40;  // what a value takes that is no text

// "2026-01-31T12:00:00.123Z". Not strftime, which takes a lock of the C library.
void put_timestamp(TextCursor& line, WallTime now) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(now);
  const auto day = std::chrono::floor<std::chrono::days>(since);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(since - day);
  line.put_padded(static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  const auto part = [&line](char before, auto number, std::size_t digits) {
    line.put(before);
    line.put_padded(static_cast<std::uint64_t>(number), digits);
  };
  part('-', static_cast<unsigned>(date.month()), 2);
  part('-', static_cast<unsigned>(date.day()), 2);
  part('T', time.hours().count(), 2);
  part(':', time.minutes().count(), 2);
  part(':', time.seconds().count(), 2);
  part('.', time.subseconds().count(), 3);
  line.put('Z');
}

// "12.345". Whole numbers throughout: the shortest text of a double takes ten times as long.
void put_milliseconds(TextCursor& line, std::chrono::microseconds time) {
  auto count = time.count();
  if (count < 0) {
    line.put('-');
    count = -count;
  }
  line.put_number(count / 1000);
  if (count % 1000 == 0) return;
  line.put('.');
  line.put_padded(static_cast<std::uint64_t>(count % 1000), 3);
}

void put_double(TextCursor& line, double number) {
  std::array<char, kNumberRoom> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  line.put(std::isfinite(number) ? digits : "null");
}

void put_value(TextCursor& line, const Field::Value& value) {
  std::visit(
      [&line](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::string_view>) {
          put_json_string(line, v);
        } else if constexpr (std::is_same_v<V, bool>) {
          line.put(v ? std::string_view("true") : "false");
        } else if constexpr (std::is_same_v<V, double>) {
          put_double(line, v);
        } else if constexpr (std::is_same_v<V, std::chrono::microseconds>) {
          put_milliseconds(line, v);
        } else {
          line.put_number(v);
        }
      },
      value);
}

std::size_t room_of(const Field& field) {
  constexpr std::size_t kMarks = std::string_view(",\"\":").size();
  const auto* text = std::get_if<std::string_view>(&field.value);
  return field.key.size() + kMarks + (text != nullptr ? json_string_room(*text) : kNumberRoom);
}

// Returns how much of `text` was written before a write failed, as on a full disk.
std::size_t write_all(int fd, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return done;
}

}  // namespace

std::string_view name(Level level) { return kLevelNames[static_cast<std::size_t>(level)]; }

std::optional<Level> parse_level(std::string_view text) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == text) return static_cast<Level>(i);
  }
  return std::nullopt;
}

Log::Log(const Clock& clock, Level level, int fd)
    : clock_(clock), level_(level), fd_(fd), thread_([this] { run(); }) {}

Log::~Log() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Log::write(Level level, std::string_view message, Fields fields, MoreFields more) {
  if (!enabled(level)) return;
  static thread_local std::string room;  // one for all lines of a thread
  hand_over(line(room, level, message, fields, more), level >= Level::kWarning);
  if (room.size() > kMostKeptLine) std::string().swap(room);
}

std::string_view Log::line(std::string& room, Level level, std::string_view message, Fields fields,
                           MoreFields more) const {
  constexpr std::size_t kFrame = 100;  // time, level, and the marks about them
  std::size_t most = kFrame + json_string_room(message);
  for (const Field& field : fields) most += room_of(field);
  for (const Field& field : more) most += room_of(field);
  if (room.size() < most) room.resize(most);
  TextCursor line(room.data());
  line.put(R"({"time":")");
  put_timestamp(line, clock_.wall_now());
  line.put(R"(","level":")");
  line.put(name(level));
  line.put(R"(","message":)");
  put_json_string(line, message);
  const auto put = [&line](const Field& field) {
    line.put(",\"");
    line.put(field.key);
    line.put("\":");
    put_value(line, field.value);
  };
  for (const Field& field : fields) put(field);
  for (const Field& field : more) put(field);
  line.put("}\n");
  return {room.data(), static_cast<std::size_t>(line.at() - room.data())};
}

void Log::hand_over(std::string_view line, bool urgent) {
  const std::lock_guard lock(mutex_);
  if (pending_.size() + line.size() > kMostPending) {
    ++lost_;
  } else {
    pending_ += line;
  }
  urgent_ = urgent_ || urgent;
  if (idle_ || urgent) wake_.notify_one();
}

void Log::flush() {
  std::unique_lock lock(mutex_);
  // What is pending now goes with the next batch, after the one that may be on its way.
  const std::uint64_t enough = batches_ + 2;
  urgent_ = true;
  wake_.notify_one();
  written_.wait(lock, [&] { return batches_ >= enough || (pending_.empty() && idle_); });
}

void Log::run() {
  std::string batch;
  std::unique_lock lock(mutex_);
  while (!stopping_ || !pending_.empty()) {
    idle_ = pending_.empty();
    if (idle_) written_.notify_all();
    wake_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    idle_ = false;
    const std::uint64_t lost = std::exchange(lost_, 0);
    batch.clear();
    batch.swap(pending_);
    lock.unlock();
    const std::uint64_t still_lost = write_out(batch, lost);
    lock.lock();
    lost_ += still_lost;
    ++batches_;
    written_.notify_all();
    wake_.wait_for(lock, kGather, [this] { return stopping_ || urgent_; });
    urgent_ = false;
  }
}

std::uint64_t Log::write_out(std::string_view batch, std::uint64_t lost) {
  std::string room;
  const auto loss = [&] { return line(room, Level::kWarning, kLinesLost, {{"lines", lost}}, {}); };
  const bool told = lost == 0 || write_lines(loss()) == 0;
  return (told ? 0 : lost) + write_lines(batch);
}

std::uint64_t Log::write_lines(std::string_view lines) {
  if (torn_ && write_all(fd_, "\n") == 1) torn_ = false;
  const std::size_t done = torn_ ? 0 : write_all(fd_, lines);
  if (done != 0) torn_ = lines[done - 1] != '\n';
  const std::string_view rest = lines.substr(done);
  return static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
}

}  // namespace penstock::base
