#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/json_text.h"

namespace penstock::base {
namespace {

constexpr std::array kLevelNames = {std::string_view("debug"), std::string_view("info"),
                                    std::string_view("warning"), std::string_view("error")};

// "2026-01-31T12:00:00.123Z"
std::string timestamp(WallTime now) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  const std::time_t seconds = since.count() / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const std::string millis = std::to_string(1000 + since.count() % 1000);
  return std::string(text.data(), size) + "." + millis.substr(1) + "Z";
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
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
          if (std::isfinite(v)) {
            append_number(out, v);
          } else {
            out += "null";
          }
        } else {
          append_number(out, v);
        }
      },
      value);
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::optional<Level> parse_level(std::string_view text) {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == text) return static_cast<Level>(i);
  }
  return std::nullopt;
}

void Log::write(Level level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  std::string line;
  line.reserve(256);
  line += R"({"time":")";
  line += timestamp(clock_.wall_now());
  line += R"(","level":")";
  line += kLevelNames[static_cast<std::size_t>(level)];
  line += R"(","message":)";
  append_json_string(line, message);
  for (const Field& field : fields) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    append_value(line, field.value);
  }
  line += "}\n";
  const std::lock_guard lock(mutex_);
  write_all(fd_, line);
}

}  // namespace penstock::base
