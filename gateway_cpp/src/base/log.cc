#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace penstock::base {
namespace {

constexpr std::size_t kMostKeptLine = 16UL * 1024;
constexpr std::string_view kLinesLost =
    "log lines were lost: writing them was too slow or failed, as on a full disk";
constexpr std::chrono::milliseconds kGather(2);  // how long lines wait for each other

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
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (name(level) == text) return level;
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

LogRoom& Log::room() {
  static thread_local LogRoom room;  // one for all lines of a thread
  if (room.text.size() > kMostKeptLine) std::string().swap(room.text);
  return room;
}

void Log::write(Level level, std::string_view message, Fields fields) {
  each(level, message, [&fields](LogLine& line) {
    for (const Field& field : fields) {
      std::visit([&](const auto& value) { line.put(field.key, value); }, field.value);
    }
  });
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
  const auto loss = [this, lost] {
    LogRoom room;
    LogLine line(room, clock_.wall_now(), Level::kWarning, kLinesLost);
    line.put("lines", lost);
    return write_lines(line.end());
  };
  const bool told = lost == 0 || loss() == 0;
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
