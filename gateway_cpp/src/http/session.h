// One client connection: reads its requests one after the other, decides from the head alone
// whether one is served, hands it to its handler, writes the answers. A coroutine on the
// connection's thread.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "admission/tenants.h"
#include "base/clock.h"
#include "http/connection.h"
#include "http/doors.h"
#include "http/handshake.h"
#include "http/http_reply.h"
#include "http/parts.h"
#include "http/request_id.h"
#include "http/request_reader.h"
#include "http/router.h"
#include "http/status_pages.h"
#include "proxy/request_flow.h"
#include "runtime/body_budget.h"

namespace penstock::http {

class WaitingSessions;

// What all sessions of a thread share. All outlive the sessions.
struct Services : proxy::GatewayParts {
  base::MetricsShard& metrics;
  std::atomic<uint32_t>& connections;  // open now, over all threads
  RequestIds& ids;
  StatusPages& pages;
  const Doors& doors;
  WaitingSessions& waiting;
  WaitingRooms* others_waiting;  // of all threads; null: there are no others
  proxy::RequestFlow* flow;      // null: a status port, which answers nobody's prompts
  admission::TenantReader* tenants = nullptr;  // null: a status port, which asks for no key
  const TlsPort* tls = nullptr;                // null: the port speaks plain HTTP
};

// Whether a client's requests are answered, or refused because the gateway has too many clients.
enum class Welcome : uint8_t { kYes, kNo };

class Session {
 public:
  using WaitingLink = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  Session(std::shared_ptr<Connection> connection, Services& services, Welcome welcome);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Awaitable<void> run();

  // The gateway drains: an idle connection ends soon, another after its answer.
  void drain();
  // The gateway ends: answers that are being made end with an error.
  void end_soon();
  // Ends it now, whatever runs.
  void abort() {
    const auto connection = connection_;  // the session may be gone when this returns
    connection->abort();
  }

  // Ends it, which waits for a request, for another's sake.
  void give_way() {
    services_.metrics.connections_evicted.add();
    abort();
  }

  Welcome welcome() const { return welcome_; }
  // Whether there was a request before the one that it waits for.
  bool has_asked() const { return has_asked_; }

  WaitingLink waiting_link;        // of a session that waits for a request
  base::SteadyTime waiting_since;  // set with the link

 private:
  using Refused = std::optional<base::Error>;

  AnswerFrame frame_of(const RequestHead& head, std::string_view id) const;
  Awaitable<bool> agree_on_tls();
  Awaitable<KeepAlive> handle(const RequestHead& head);
  Awaitable<void> respond(const RequestHead& head, const Match& matched, std::string_view id,
                          HttpReply& reply);
  Awaitable<void> dispatch(const RequestHead& head, const Found& found, std::string_view id,
                           HttpReply& reply);
  bool has(Page page) const;
  Refused refusal(const RequestHead& head, const Match& matched);
  Refused know_caller(const RequestHead& head, Page page);
  const admission::Tenant* viewer() const;
  base::Error no_such_page(const RequestHead& head) const;
  std::shared_ptr<runtime::BodyBudget> own_bodies();
  Awaitable<void> generate(const Found& found, const RequestHead& head, std::string_view id,
                           HttpReply& reply);
  Awaitable<void> show_model(const std::string& id, HttpReply& reply);
  Awaitable<void> show(PageText page, HttpReply& reply);
  Awaitable<void> describe(HttpReply& reply);
  Awaitable<void> refuse(base::Error error, HttpReply& reply);
  Awaitable<void> refuse_unread(const Unreadable& unreadable);
  Awaitable<void> tell_options(const RequestHead& head, const Options& options, HttpReply& reply);
  Awaitable<void> tell_broken(std::string_view what, HttpReply& reply);
  Awaitable<void> end();

  const std::shared_ptr<Connection> connection_;
  Services& services_;
  const Welcome welcome_;
  std::optional<Handshake> handshake_;  // until it is over, where there is one
  RequestReader reader_;
  bool has_asked_ = false;
  base::SteadyTime received_{};  // when the last byte that was read of this request had come
  std::optional<admission::Caller> caller_;          // of the request that is answered
  std::shared_ptr<runtime::BodyBudget> own_bodies_;  // null: there was no body yet
  std::string own_bodies_of_;                        // the tenant; empty: the address
  bool answering_ = false;                           // a request was read, and is not settled
  bool cut_off_ = false;  // the last answer is not whole, and only a reset can tell its client
  Connection::Farewell farewell_ = Connection::Farewell::kWhole;
};

}  // namespace penstock::http
