// One client connection: reads its requests one after the other, decides from the head alone
// whether one is served, hands it to its handler, writes the answers. A coroutine on the
// connection's thread.
#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/metrics.h"
#include "http/connection.h"
#include "http/doors.h"
#include "http/http_reply.h"
#include "http/request_id.h"
#include "http/request_reader.h"
#include "http/router.h"
#include "http/status_pages.h"
#include "proxy/body_budget.h"
#include "proxy/gateway_state.h"
#include "proxy/request_flow.h"

namespace penstock::http {

struct WaitingSessions;

// What all sessions of a thread share. All outlive the sessions.
struct Services {
  const base::Clock& clock;
  base::Log& log;
  const base::GatewayConfig& config;
  base::MetricsShard& metrics;
  proxy::GatewayState& state;
  std::atomic<uint32_t>& connections;  // open now, over all threads
  RequestIds& ids;
  StatusPages& pages;
  const Doors& doors;
  proxy::BodyBudget& bodies;
  WaitingSessions& waiting;
  proxy::RequestFlow* flow;  // null: a status port, which answers nobody's prompts
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
  void end_soon() { connection_->end_soon(); }
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

  WaitingLink waiting_link;  // of a session that waits for a request

 private:
  using Refused = std::optional<base::Error>;

  Awaitable<KeepAlive> handle(const RequestHead& head);
  Awaitable<void> respond(const RequestHead& head, std::string_view id, HttpReply& reply);
  Awaitable<void> dispatch(const RequestHead& head, const Found& found, std::string_view id,
                           HttpReply& reply);
  Refused refusal(const RequestHead& head, const Match& matched) const;
  base::Error no_such_page(const RequestHead& head) const;
  Awaitable<void> generate(const Found& found, const RequestHead& head, std::string_view id,
                           HttpReply& reply);
  Awaitable<void> show(PageText page, HttpReply& reply);
  Awaitable<void> refuse(const base::Error& error, HttpReply& reply);
  Awaitable<void> refuse_unread(const base::Error& error);
  Awaitable<void> preflight(const RequestHead& head, HttpReply& reply);
  Awaitable<void> tell_broken(std::string_view what, HttpReply& reply);
  Awaitable<void> end();
  void wait_in_line();

  const std::shared_ptr<Connection> connection_;
  Services& services_;
  const Welcome welcome_;
  RequestReader reader_;
  bool has_asked_ = false;
  bool cut_off_ = false;  // the last answer is not whole, and its client must see that
};

// The sessions of a thread that wait for a request, the longest first: who gives way when the
// gateway has as many clients as it may.
struct WaitingSessions {
  using List = boost::intrusive::list<
      Session, boost::intrusive::member_hook<Session, Session::WaitingLink, &Session::waiting_link>,
      boost::intrusive::constant_time_size<false>>;
  List never_asked;
  List idle;

  // Ends one, those that have never asked first. False: all are busy.
  bool make_room();
};

}  // namespace penstock::http
