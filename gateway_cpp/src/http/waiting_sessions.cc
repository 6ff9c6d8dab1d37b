#include "http/waiting_sessions.h"

#include <boost/asio/post.hpp>

namespace penstock::http {

namespace {

// Whoever comes in a burst has not had the time to ask: only older silence is a reason to go first.
constexpr std::chrono::seconds kNewcomer{1};

// Of a number that nobody else writes.
void add_alone(std::atomic<uint32_t>& number, int more) {
  const uint32_t sum = number.load(std::memory_order_relaxed) + static_cast<uint32_t>(more);
  number.store(sum, std::memory_order_relaxed);
}

}  // namespace

void WaitingSessions::add(Session& session) {
  session.waiting_since = timers_.now();
  list_of(session).push_back(session);
  count(session, 1);
}

WaitingSessions::List& WaitingSessions::list_of(const Session& session) {
  if (session.welcome() == Welcome::kNo) return over_;
  return session.has_asked() ? idle_ : never_asked_;
}

void WaitingSessions::remove(Session& session) {
  if (!session.waiting_link.is_linked()) return;
  session.waiting_link.unlink();
  count(session, -1);
}

void WaitingSessions::count(const Session& session, int more) {
  if (session.welcome() == Welcome::kNo) return;
  add_alone(waiting_, more);
  if (session.has_asked()) add_alone(waiting_idle_, more);
}

WaitingSessions::List& WaitingSessions::first_to_go(Waiting who) {
  if (who == Waiting::kOver) return over_;
  const bool silent =
      !never_asked_.empty() && timers_.now() - never_asked_.front().waiting_since >= kNewcomer;
  return silent || (who == Waiting::kAny && idle_.empty()) ? never_asked_ : idle_;
}

bool WaitingSessions::make_room(Waiting who) {
  List& list = first_to_go(who);
  if (list.empty()) return false;
  Session& session = list.front();
  remove(session);
  session.give_way();
  return true;
}

bool WaitingSessions::claim(Waiting who) {
  const auto& waiting = who == Waiting::kAny ? waiting_ : waiting_idle_;
  const uint32_t before = claimed_.fetch_add(1, std::memory_order_relaxed);
  if (before < waiting.load(std::memory_order_relaxed)) return true;
  claimed_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

bool WaitingSessions::give_way(Waiting who) {
  claimed_.fetch_sub(1, std::memory_order_relaxed);
  return make_room(who);
}

bool WaitingRooms::make_room_beside(const WaitingSessions& own, Waiting who) {
  for (const Room& room : rooms_) {
    if (room.sessions == &own || !room.sessions->claim(who)) continue;
    asio::post(*room.io, [this, sessions = room.sessions, who] {
      if (!sessions->give_way(who)) make_room_beside(*sessions, who);
    });
    return true;
  }
  return false;
}

}  // namespace penstock::http
