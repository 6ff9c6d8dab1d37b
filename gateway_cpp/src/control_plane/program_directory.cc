#include "control_plane/program_directory.h"

#include <simdjson.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/file_text.h"
#include "base/printable.h"
#include "dispatch/dispatchers.h"

namespace penstock::control_plane {
namespace {

constexpr std::size_t kMostBytes = 64UL * 1024;
constexpr std::size_t kLongestWord = 256;
constexpr std::size_t kMostDigests = 256;
constexpr std::string_view kLoopback = "127.0.0.1:";

// A uid is a file's name here.
bool is_file_name(std::string_view uid) {
  constexpr std::string_view kMarks = "-_.";
  const auto fits = [kMarks](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  };
  return !uid.empty() && uid.front() != '.' && std::ranges::all_of(uid, fits);
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kLongestWord && base::is_printable_ascii(text);
}

}  // namespace

bool ProgramSeat::runs(std::string_view digest) const {
  return std::ranges::find(digests, digest) != digests.end();
}

std::unique_ptr<ProgramSeat> read_seat(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::object read;
  if (parser.parse(text.data(), text.size()).get(read) != simdjson::SUCCESS) return nullptr;
  const auto text_of = [&read](std::string_view key) {
    std::string_view found;
    return read[key].get(found) == simdjson::SUCCESS ? std::string(found) : std::string();
  };
  auto seat = std::make_unique<ProgramSeat>();
  seat->address = text_of("address");
  seat->token = text_of("token");
  if (!is_word(seat->address) || !seat->address.starts_with(kLoopback)) return nullptr;
  if (!is_word(seat->token)) return nullptr;
  simdjson::dom::array digests;
  if (read["digests"].get(digests) != simdjson::SUCCESS) return nullptr;
  if (digests.size() > kMostDigests) return nullptr;
  for (const simdjson::dom::element one : digests) {
    std::string_view digest;
    if (one.get(digest) != simdjson::SUCCESS || !is_word(digest)) return nullptr;
    seat->digests.emplace_back(digest);
  }
  return seat;
}

bool ProgramDirectory::look(const routing::Routes& routes) {
  if (path_.empty()) return false;
  std::set<std::string> wanted;
  for (const auto& [name, route] : routes.deployments()) {
    if (route->program) wanted.insert(dispatch::key_of(*route));
  }
  std::map<std::string, Entry> next;
  for (const std::string& uid : wanted) {
    const auto known = entries_.find(uid);  // nobody else writes them
    Entry& entry = next[uid];
    if (known != entries_.end()) entry = known->second;
    read(uid, entry);
  }
  const std::lock_guard lock(mutex_);
  entries_ = std::move(next);
  return !entries_.empty();
}

// What makes no sense is told once, and is none.
void ProgramDirectory::read(const std::string& uid, Entry& entry) {
  const std::string path = path_ + "/" + uid + ".json";
  std::optional<std::string> text;
  if (is_file_name(uid)) text = base::read_file(path);
  if (text.value_or(std::string()) == entry.text) return;
  entry.text = text.value_or(std::string());
  entry.seat.reset();
  if (entry.text.empty()) return;
  if (entry.text.size() <= kMostBytes) entry.seat = read_seat(entry.text);
  if (!entry.seat) log_.warning("the file of a router program makes no sense", {{"path", path}});
}

std::shared_ptr<const ProgramSeat> ProgramDirectory::find(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(uid);
  return found == entries_.end() ? nullptr : found->second.seat;
}

}  // namespace penstock::control_plane
