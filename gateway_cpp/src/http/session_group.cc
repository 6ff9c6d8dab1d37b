#include "http/session_group.h"

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <vector>

namespace penstock::http {

void SessionGroup::start(std::shared_ptr<Connection> connection, Welcome welcome) {
  auto session = std::make_shared<Session>(connection, services_, welcome);
  const Session* const key = session.get();
  sessions_.emplace(key, session);
  services_.metrics.connections.add(1);
  services_.metrics.connections_accepted.add();
  asio::co_spawn(io_.get_executor(), session->run(),
                 [this, key, connection = std::move(connection)](const std::exception_ptr& broken) {
                   if (broken) note(broken);
                   connection->close();
                   end(key);
                 });
}

void SessionGroup::note(const std::exception_ptr& broken) {
  services_.metrics.broken_requests.add();
  try {
    std::rethrow_exception(broken);
  } catch (const std::exception& error) {
    log_.error("a session ended by an exception", {{"error", error.what()}});
  }
}

void SessionGroup::end(const Session* session) {
  sessions_.erase(session);
  services_.metrics.connections.add(-1);
  services_.connections.fetch_sub(1, std::memory_order_relaxed);
}

// Sessions may end while they are told.
std::vector<std::shared_ptr<Session>> SessionGroup::all() const {
  std::vector<std::shared_ptr<Session>> sessions;
  sessions.reserve(sessions_.size());
  for (const auto& [key, session] : sessions_) sessions.push_back(session);
  return sessions;
}

void SessionGroup::drain() {
  for (const auto& session : all()) session->drain();
}

void SessionGroup::end_soon() {
  for (const auto& session : all()) session->end_soon();
}

void SessionGroup::abort() {
  for (const auto& session : all()) session->abort();
}

}  // namespace penstock::http
