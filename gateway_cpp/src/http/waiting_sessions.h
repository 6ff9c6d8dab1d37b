// The sessions of a thread that wait for a request: who gives way when the gateway has as many
// clients as it may. That thread only, but for what says otherwise.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/intrusive/list.hpp>
#include <vector>

#include "http/session.h"
#include "runtime/timer_wheel.h"

namespace penstock::http {

// Who is asked to give way.
enum class Waiting : uint8_t {
  kLong,  // who is idle between requests, or has connected and said nothing for a while
  kAny,   // whoever has just come, too
  kOver,  // who is there beyond the limit, to be told so: it has no place to give, but to its like
};

class WaitingSessions {
 public:
  explicit WaitingSessions(const runtime::TimerWheel& timers) : timers_(timers) {}
  WaitingSessions(const WaitingSessions&) = delete;
  WaitingSessions& operator=(const WaitingSessions&) = delete;

  void add(Session& session);
  void remove(Session& session);  // if it waits

  // A session waits for as long as this lives, however its wait ends.
  class Stay {
   public:
    Stay(WaitingSessions& waiting, Session& session) : waiting_(waiting), session_(session) {
      waiting_.add(session_);
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() { waiting_.remove(session_); }

   private:
    WaitingSessions& waiting_;
    Session& session_;
  };

  // Ends one: who has connected and said nothing for a while, else who is idle longest, else the
  // first of those who have just come. False: there is none of these.
  bool make_room(Waiting who);

  // Any thread: sets one aside, for which give_way() is to be called on its own thread. False: all
  // are set aside. Of those who wait long only the idle ones are known to other threads.
  bool claim(Waiting who);
  // For a claim: none of those gives way who were not asked. False: the one set aside is busy by
  // now, or has gone.
  bool give_way(Waiting who);

 private:
  using List = boost::intrusive::list<
      Session, boost::intrusive::member_hook<Session, Session::WaitingLink, &Session::waiting_link>,
      boost::intrusive::constant_time_size<false>>;

  List& list_of(const Session& session);
  List& first_to_go(Waiting who);
  void count(const Session& session, int more);

  const runtime::TimerWheel& timers_;
  List never_asked_;  // the longest waiting first, as in the other
  List idle_;
  List over_;                              // which are in no number
  std::atomic<uint32_t> waiting_{0};       // written by this thread alone
  std::atomic<uint32_t> waiting_idle_{0};  // of these, who has asked before; likewise
  std::atomic<uint32_t> claimed_{0};
};

// Those of all I/O threads, among which the kernel spreads the clients as it likes: a thread whose
// own are all busy has one of another's give way.
class WaitingRooms {
 public:
  // Before any of the threads runs. Both outlive the threads.
  void add(asio::io_context& io, WaitingSessions& sessions) { rooms_.push_back({&io, &sessions}); }

  // Any thread: has one of another thread's sessions end soon, of whichever still has one when it
  // comes to it. False: none waits there.
  bool make_room_beside(const WaitingSessions& own, Waiting who);

 private:
  struct Room {
    asio::io_context* io;
    WaitingSessions* sessions;
  };

  std::vector<Room> rooms_;
};

}  // namespace penstock::http
