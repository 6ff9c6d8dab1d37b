#include "proxy/program_links.h"

#include <chrono>

namespace penstock::proxy {
namespace {

constexpr std::chrono::seconds kLastWordWithin{5};

}  // namespace

std::shared_ptr<ProgramLink> ProgramLinks::to(const std::string& uid, std::string_view digest) {
  const auto seat = directory_.find(uid);
  if (!seat || !seat->runs(digest)) return nullptr;
  Entry& entry = entries_[uid];
  const bool is_same = entry.link && entry.link->seat().address == seat->address &&
                       entry.link->seat().token == seat->token;
  if (is_same && !entry.link->closed_to_asks()) return entry.link;
  if (!is_same) entry = {};  // another process is asked at once, and that one's questions end there
  if (is_same && entry.link->heard()) entry.backoff.reset();
  const auto now = clock_.steady_now();
  if (now < entry.next_start) return nullptr;
  entry.next_start = now + entry.backoff.next();
  entry.link = std::make_shared<ProgramLink>(seat, connect_);
  return entry.link;
}

void ProgramLinks::tell(const upstream::ReplicaAddress& replica,
                        const upstream::CallRequest& request) {
  auto call = upstream_.open(replica, request, nobody_, nullptr);
  last_words_.push_back({std::move(call), clock_.steady_now() + kLastWordWithin});
}

void ProgramLinks::tick() {
  const auto now = clock_.steady_now();
  std::erase_if(last_words_,
                [now](const LastWord& one) { return one.call->ended() || now >= one.until; });
  std::erase_if(entries_, [this](const auto& entry) { return !directory_.find(entry.first); });
}

}  // namespace penstock::proxy
