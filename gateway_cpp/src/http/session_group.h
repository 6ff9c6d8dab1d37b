// The sessions of one I/O thread: every one is owned here from its start to its end. That thread
// only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "http/session.h"
#include "http/waiting_sessions.h"

namespace penstock::http {

class SessionGroup {
 public:
  SessionGroup(asio::io_context& io, Services& services, base::Log& log)
      : io_(io), services_(services), log_(log) {}
  SessionGroup(const SessionGroup&) = delete;
  SessionGroup& operator=(const SessionGroup&) = delete;

  // It is among Services::connections already, and leaves them when it ends.
  void start(std::shared_ptr<Connection> connection, Welcome welcome);
  // Ends one that waits for a request, so that another has its place. False: all are busy.
  bool make_room(Waiting who) { return services_.waiting.make_room(who); }
  // The same among other threads' sessions, a little later.
  bool make_room_elsewhere(Waiting who) {
    return services_.others_waiting != nullptr &&
           services_.others_waiting->make_room_beside(services_.waiting, who);
  }
  // Idle ones end soon, others after their answer.
  void drain();
  // Answers that are being made end with an error, and everything else ends.
  void end_soon();
  // All end now.
  void abort();
  size_t size() const { return sessions_.size(); }

 private:
  void end(const Session* session);
  void note(const std::exception_ptr& broken);
  std::vector<std::shared_ptr<Session>> all() const;

  asio::io_context& io_;
  Services& services_;
  base::Log& log_;
  std::unordered_map<const Session*, std::shared_ptr<Session>> sessions_;
};

}  // namespace penstock::http
