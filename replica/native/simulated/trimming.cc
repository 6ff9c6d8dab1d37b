#include "simulated/trimming.h"

#include <algorithm>
#include <unordered_map>

namespace penstock::replica::simulated {
namespace {

constexpr size_t kNone = SIZE_MAX;

// For each message the place of the one that made the calls that it belongs to: its own, or of the
// newest before it whose result it is. Ids may come again in every turn.
std::vector<size_t> calls_answered(std::span<const Message> messages) {
  std::unordered_map<std::string_view, size_t> made;
  std::vector<size_t> answered(messages.size(), kNone);
  for (size_t place = 0; place < messages.size(); ++place) {
    for (const std::string_view id : messages[place].calls) made[id] = place;
    const auto found = made.find(messages[place].result_of);
    if (!messages[place].calls.empty()) {
      answered[place] = place;
    } else if (found != made.end()) {
      answered[place] = found->second;
    }
  }
  return answered;
}

// Whether each message stays for its own sake, or for that of a call that it belongs to.
std::vector<bool> staying(std::span<const Message> messages, const std::vector<size_t>& calls) {
  std::vector<bool> lasting(messages.size(), false);
  std::vector<bool> stays(messages.size(), false);
  for (size_t place = 0; place < messages.size(); ++place) {
    const Message& message = messages[place];
    stays[place] = message.pinned || message.role == "system" || message.role == "developer";
    if (stays[place] && calls[place] != kNone) lasting[calls[place]] = true;
  }
  for (size_t place = 0; place < messages.size(); ++place) {
    if (calls[place] != kNone && lasting[calls[place]]) stays[place] = true;
  }
  return stays;
}

// Where each unit begins that goes at once: a turn, or several that a call and its result have in
// common.
std::vector<size_t> units(std::span<const Message> messages, const std::vector<size_t>& calls) {
  std::vector<size_t> last(messages.size(), 0);  // by the place of a call: of its last result
  for (size_t place = 0; place < messages.size(); ++place) {
    if (calls[place] != kNone) last[calls[place]] = place;
  }
  std::vector<size_t> begins;
  size_t until = 0;
  for (size_t place = 0; place < messages.size(); ++place) {
    const bool turn = place == 0 || messages[place].role == "user";
    if (turn && (place == 0 || place > until)) begins.push_back(place);
    until = std::max(until, last[place]);
  }
  return begins;
}

}  // namespace

std::optional<std::vector<bool>> fitted(std::span<const Message> messages, uint64_t budget) {
  const std::vector<size_t> calls = calls_answered(messages);
  const std::vector<bool> stays = staying(messages, calls);
  const std::vector<size_t> begins = units(messages, calls);
  std::vector<bool> kept(messages.size(), true);
  uint64_t tokens = 0;
  for (const Message& message : messages) tokens += message.tokens;
  for (size_t unit = 0; unit + 1 < begins.size() && tokens > budget; ++unit) {
    for (size_t place = begins[unit]; place < begins[unit + 1]; ++place) {
      kept[place] = stays[place];
      if (!stays[place]) tokens -= messages[place].tokens;
    }
  }
  if (tokens > budget) return std::nullopt;
  return kept;
}

}  // namespace penstock::replica::simulated
