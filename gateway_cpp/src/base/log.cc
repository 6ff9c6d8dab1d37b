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

namespace penstock::base {
namespace {

constexpr std::array kLevelNames = {std::string_view("debug"), std::string_view("info"),
                                    std::string_view("warning"), std::string_view("error")};

constexpr std::size_t kMostKeptLine = 16UL * 1024;
constexpr std::string_view kLinesLost =
    "log lines were lost: writing them was too slow or failed, as on a full disk";
constexpr std::chrono::milliseconds kGather(2);  // how long lines wait for each other

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

// The last `width` digits of `number`.
void append_padded(std::string& out, std::int64_t number, std::size_t width) {
  std::array<char, 8> text{};
  for (std::size_t i = width; i > 0; number /= 10) text[--i] = static_cast<char>('0' + number % 10);
  out.append(text.data(), width);
}

// "2026-01-31T12:00:00.123Z". Not strftime, which takes a lock of the C library.
void append_timestamp(std::string& out, WallTime now) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(now);
  const auto day = std::chrono::floor<std::chrono::days>(since);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(since - day);
  append_padded(out, static_cast<int>(date.year()), 4);
  const auto part = [&out](char before, std::int64_t number, std::size_t width) {
    out += before;
    append_padded(out, number, width);
  };
  part('-', static_cast<unsigned>(date.month()), 2);
  part('-', static_cast<unsigned>(date.day()), 2);
  part('T', time.hours().count(), 2);
  part(':', time.minutes().count(), 2);
  part(':', time.seconds().count(), 2);
  part('.', time.subseconds().count(), 3);
  out += 'Z';
}

// "12.345". Whole numbers throughout: the shortest text of a double takes ten times as long.
void append_milliseconds(std::string& out, std::chrono::microseconds time) {
  auto count = time.count();
  if (count < 0) {
    out += '-';
    count = -count;
  }
  append_number(out, count / 1000);
  if (count % 1000 == 0) return;
  out += '.';
  append_padded(out, count % 1000, 3);
}

void append_double(std::string& out, double number) {
  if (std::isfinite(number)) {
    append_number(out, number);
  } else {
    out += "null";
  }
}

void append_value(std::string& out, const Field::Value& value) {
  std::visit(
      [&out](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, std::string_view>) {
          append_json_string(out, v);
        } else if constexpr (std::is_same_v<V, bool>) {
          out += v ? "true" : "false";
        } else if constexpr (std::is_same_v<V, double>) {
          append_double(out, v);
        } else if constexpr (std::is_same_v<V, std::chrono::microseconds>) {
          append_milliseconds(out, v);
        } else {
          append_number(out, v);
        }
      },
      value);
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
  static thread_local std::string text;  // one for all lines of a thread
  text.clear();
  append_line(text, level, message, fields, more);
  hand_over(text, level >= Level::kWarning);
  if (text.capacity() > kMostKeptLine) std::string().swap(text);
}

void Log::append_line(std::string& line, Level level, std::string_view message, Fields fields,
                      MoreFields more) const {
  line += R"({"time":")";
  append_timestamp(line, clock_.wall_now());
  line += R"(","level":")";
  line += kLevelNames[static_cast<std::size_t>(level)];
  line += R"(","message":)";
  append_json_string(line, message);
  const auto append = [&line](const Field& field) {
    line += ",\"";
    line += field.key;
    line += "\":";
    append_value(line, field.value);
  };
  for (const Field& field : fields) append(field);
  for (const Field& field : more) append(field);
  line += "}\n";
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
  std::string loss;
  if (lost != 0) append_line(loss, Level::kWarning, kLinesLost, {{"lines", lost}}, {});
  const bool told = loss.empty() || write_lines(loss) == 0;
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
