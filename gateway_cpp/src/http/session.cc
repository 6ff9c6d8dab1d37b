#include "http/session.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/priority.h"
#include "http/api_key.h"
#include "http/content_coding.h"
#include "http/openapi.h"
#include "http/session_errors.h"
#include "http/waiting_sessions.h"

namespace penstock::http {

namespace {

constexpr std::string_view kAllMethods = "GET, HEAD, POST, OPTIONS";
constexpr size_t kShown = 200;  // of a hostile path
// What an idle connection still gets when the gateway drains: its next request may be on its way.
constexpr std::chrono::milliseconds kDrainGrace{500};

ReadLimits limits_of(const base::GatewayConfig& config) {
  return {.head_bytes = config.header_limit_bytes,
          .body_bytes = config.body_limit_bytes,
          .body_rate = config.body_least_rate,
          .head_timeout = config.header_timeout,
          .body_timeout = config.body_timeout,
          .idle_timeout = config.idle_timeout};
}

bool is_status_page(Page page) {
  return page == Page::kLivez || page == Page::kReadyz || page == Page::kStartupz ||
         page == Page::kHealth || page == Page::kPing || page == Page::kDeepHealth ||
         page == Page::kVersion || page == Page::kMetrics;
}

}  // namespace

Session::Session(std::shared_ptr<Connection> connection, Services& services, Welcome welcome)
    : connection_(std::move(connection)),
      services_(services),
      welcome_(welcome),
      reader_(*connection_, limits_of(services.config)) {
  if (services.tls != nullptr) handshake_.emplace(*connection_, *services.tls);
}

Awaitable<void> Session::run() {
  const bool agreed = co_await agree_on_tls();
  KeepAlive keep_alive = agreed ? KeepAlive::kYes : KeepAlive::kNo;
  while (keep_alive == KeepAlive::kYes) {
    if (services_.state.draining.load(std::memory_order_relaxed)) reader_.hurry(kDrainGrace);
    std::optional<WaitingSessions::Stay> stay(std::in_place, services_.waiting, *this);
    const auto outcome = co_await reader_.next();
    stay.reset();
    has_asked_ = true;
    if (std::holds_alternative<NoMore>(outcome)) break;
    answering_ = true;
    // What others were sent with it has gone; the next request does not wait in front of it.
    if (connection_->behind()) co_await connection_->flush();
    answering_ = false;
    if (std::holds_alternative<AnswerFirst>(outcome)) continue;
    if (const auto* unreadable = std::get_if<Unreadable>(&outcome)) {
      co_await refuse_unread(*unreadable);
      break;
    }
    answering_ = true;
    keep_alive = co_await handle(std::get<RequestHead>(outcome));
    answering_ = false;
  }
  co_await end();
}

// False: there is nothing to read on this connection.
Awaitable<bool> Session::agree_on_tls() {
  if (!handshake_) co_return true;
  if (welcome_ == Welcome::kNo) co_return false;  // a signature for each of a crowd costs too much
  std::optional<WaitingSessions::Stay> stay(std::in_place, services_.waiting, *this);
  const auto timeout = std::min(services_.config.idle_timeout, services_.config.header_timeout);
  const auto outcome = co_await handshake_->run(timeout);
  stay.reset();
  const std::string fault = handshake_->fault();
  handshake_.reset();
  services_.metrics.tls_handshakes.add();
  if (outcome == Handshake::End::kSecure) co_return true;
  services_.metrics.tls_handshakes_failed.add();
  services_.log.debug("no TLS with a client", {{"fault", fault}});
  if (outcome == Handshake::End::kPlainHttp) {
    const Unreadable unreadable{plain_http()};
    co_await refuse_unread(unreadable);
  }
  co_return false;
}

// A client that must see its answer cut off gets a reset, once its system has what was sent.
Awaitable<void> Session::end() {
  if (cut_off_) {
    co_await connection_->hand_over();
  } else {
    connection_->set_ending(Connection::Ending::kClean);
    co_await connection_->linger(farewell_);
  }
  connection_->close();
}

void Session::drain() {
  if (handshake_) handshake_->hurry(kDrainGrace);
  reader_.hurry(kDrainGrace);
}

void Session::end_soon() {
  if (answering_ || connection_->behind())
    services_.state.requests_cut.fetch_add(1, std::memory_order_relaxed);
  const auto connection = connection_;  // the session may be gone when this returns
  connection->end_soon();
}

AnswerFrame Session::frame_of(const RequestHead& head, std::string_view id) const {
  const Origins& origins = services_.doors.origins();
  return {.request_id = id,
          .callers_id = callers_id(head),
          .head = head,
          .reader = origins.allow(head.origin) ? head.origin : std::string_view(),
          .depends_on_origin = !origins.none()};
}

Awaitable<KeepAlive> Session::handle(const RequestHead& head) {
  using Progress = HttpReply::Progress;
  received_ = {};
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, frame_of(head, id));
  if (services_.state.draining.load(std::memory_order_relaxed)) reply.close_after();
  std::string broken;
  try {
    const Match matched = match(head.method, head.target);
    co_await respond(head, matched, id, reply);
  } catch (const std::exception& error) {
    broken = error.what();
  }
  if (!broken.empty()) co_await tell_broken(broken, reply);
  connection_->end_answer();
  if (reply.progress() == Progress::kWhole && !connection_->gone()) co_return reply.keep_alive();
  const bool partly = reply.progress() == Progress::kBegun;
  // Of an answer that was written whole, the rest was never handed over.
  const bool lost = reply.progress() == Progress::kCut || connection_->gone();
  cut_off_ = partly || (lost && reply.ends_with_connection());
  if (reply.progress() == Progress::kCut) farewell_ = Connection::Farewell::kCut;
  if (cut_off_) connection_->set_ending(Connection::Ending::kReset);
  co_return KeepAlive::kNo;
}

// Nothing of a body is read before the head has passed everything that it can fail. What it is
// given lives as long as what it returns is waited for.
Awaitable<void> Session::respond(const RequestHead& head, const Match& matched, std::string_view id,
                                 HttpReply& reply) {
  auto refused = refusal(head, matched);
  const auto* found = std::get_if<Found>(&matched);
  const bool reads = !refused && found != nullptr && found->page == Page::kEndpoint;
  // A body that is not read ends no request.
  if (welcome_ == Welcome::kNo || (head.has_body() && !reads)) reply.close_after();
  if (refused) {
    if (const auto* wrong = std::get_if<WrongMethod>(&matched)) reply.add("allow", wrong->allow);
    const bool wrong_type = refused->kind == base::Kind::kUnsupportedMediaType;
    if (wrong_type) reply.add("accept-encoding", kTakenCodings);
    return refuse(*std::move(refused), reply);
  }
  if (const auto* options = std::get_if<Options>(&matched)) {
    return tell_options(head, *options, reply);
  }
  return dispatch(head, *found, id, reply);
}

// Whether the page is on this port.
bool Session::has(Page page) const {
  const bool is_status_port = services_.flow == nullptr;
  return is_status_port ? is_status_page(page) : page != Page::kMetrics;
}

Session::Refused Session::refusal(const RequestHead& head, const Match& matched) {
  const auto* found = std::get_if<Found>(&matched);
  // Clients cannot use up what tells whether the gateway lives.
  const bool asks_how_it_is = found != nullptr && is_status_page(found->page);
  if (welcome_ == Welcome::kNo && !asks_how_it_is) return too_many_clients();
  if (auto closed = services_.doors.refusal(head)) return closed;
  if (const auto* options = std::get_if<Options>(&matched)) {
    // A page that is told 404 before it may ask would show an error of another kind.
    if (!head.origin.empty() || head.target == "*") return std::nullopt;
    if (!options->page || !has(*options->page)) return no_such_page(head);
    return std::nullopt;
  }
  if (const auto* wrong = std::get_if<WrongMethod>(&matched)) {
    return wrong_method(head, wrong->allow);
  }
  if (found == nullptr || !has(found->page)) return no_such_page(head);
  if (auto stranger = know_caller(head, found->page)) return stranger;
  if (found->page != Page::kEndpoint) return std::nullopt;
  if (!is_json(head)) return wrong_content_type(head);
  if (coding_of(head) == Coding::kUnknown) return wrong_coding(head);
  return wrong_own_header(head);
}

// Whose request it is, where the page is for those who may call, or tells them more than others.
Session::Refused Session::know_caller(const RequestHead& head, Page page) {
  caller_.reset();
  const bool asks = page == Page::kEndpoint || page == Page::kModels || page == Page::kModel ||
                    page == Page::kUsage;
  const bool knows = asks || page == Page::kDeepHealth;
  if (!knows || services_.tenants == nullptr) return std::nullopt;
  auto found = services_.tenants->find(presented_key(head), services_.clock.wall_now());
  if (const auto* fault = std::get_if<admission::KeyFault>(&found)) {
    if (!asks) return std::nullopt;
    services_.metrics.keys_refused.add();
    return admission::key_error(*fault);
  }
  caller_ = std::move(std::get<admission::Caller>(found));
  return std::nullopt;
}

// Who is told of deployments; null: a stranger. The status port is the operator's.
const admission::Tenant* Session::viewer() const {
  static const admission::Tenant everything;
  if (services_.tenants == nullptr) return &everything;
  return caller_ ? caller_->tenant.get() : nullptr;
}

base::Error Session::no_such_page(const RequestHead& head) const {
  const base::Address& status = services_.config.metrics;
  const bool is_status_port = services_.flow == nullptr;
  if (!is_status_port && !head.target.starts_with("/metrics")) {
    return base::make_error(base::Kind::kPathNotFound,
                            openai::nothing_at(head.method, head.target));
  }
  std::string message = "There is nothing at " + std::string(head.method) + " " +
                        std::string(head.target.substr(0, kShown)) + ". ";
  if (is_status_port) {
    message +=
        "This port has /metrics, /livez, /readyz, /startupz, /health, /health/deep, /ping and "
        "/version.";
  } else if (status.host.empty()) {
    message += "Start the gateway with --metrics HOST:PORT, and its metrics are there.";
  } else {
    message += "The metrics are at " + status.text() + ".";
  }
  return base::make_error(base::Kind::kPathNotFound, std::move(message));
}

// Likewise.
Awaitable<void> Session::dispatch(const RequestHead& head, const Found& found, std::string_view id,
                                  HttpReply& reply) {
  switch (found.page) {
    case Page::kEndpoint:
      return generate(found, head, id, reply);
    case Page::kModels:
      return show(services_.pages.models(*caller_->tenant), reply);
    case Page::kModel:
      return show_model(found.model_id, reply);
    case Page::kUsage:
      return show(services_.pages.usage(*caller_), reply);
    case Page::kLivez:
      return show(services_.pages.live(), reply);
    case Page::kReadyz:
      return show(services_.pages.ready(), reply);
    case Page::kStartupz:
      return show(services_.pages.started(), reply);
    case Page::kHealth:
      return show(services_.pages.health(), reply);
    case Page::kPing:
      return show(services_.pages.ping(), reply);
    case Page::kDeepHealth:
      return show(services_.pages.deep_health(viewer()), reply);
    case Page::kVersion:
      return show(services_.pages.version(), reply);
    case Page::kOpenapi:
      return describe(reply);
    case Page::kMetrics:
      break;
  }
  return show(services_.pages.metrics(head.accept), reply);
}

Awaitable<void> Session::generate(const Found& found, const RequestHead& head, std::string_view id,
                                  HttpReply& reply) {
  proxy::Ask ask;
  ask.share = runtime::BodyShare(services_.bodies, own_bodies());
  base::MaybeError unreadable;
  if (!reader_.take_body(head, ask.share, ask.body)) {
    unreadable = co_await reader_.body(head, ask.share, ask.body);
  }
  received_ = ask.received = services_.clock.steady_now();
  if (connection_->gone()) co_return;
  if (unreadable) {
    services_.metrics.bad_requests.add();
    reply.close_after();
    co_return co_await refuse(*unreadable, reply);
  }
  if (connection_->cut_short()) {  // half a body is no request
    reply.close_after();
    const base::Error error = proxy::stop_error(proxy::Stop::kDraining);
    co_return co_await refuse(error, reply);
  }
  reply.watch_client();
  ask.request_id = std::string(id);
  ask.client_request_id = std::string(callers_id(head));
  if (!head.traceparent.empty()) ask.traceparent = head.traceparent;
  if (services_.config.client_addresses) ask.client = connection_->client_address();
  ask.endpoint = found.endpoint;
  ask.caller = std::move(*caller_);
  if (!head.priority.empty()) ask.priority = base::priority_named(head.priority);
  if (!head.session.empty()) ask.session = head.session;
  if (!head.category.empty()) ask.category = head.category;
  ask.wants_metadata = head.metadata == kIncludeMetadata;
  ask.may_degrade = head.degrade != kNeverDegrade;
  co_await services_.flow->run(ask, reply);
}

Awaitable<void> Session::show_model(const std::string& id, HttpReply& reply) {
  auto page = services_.pages.model(*caller_->tenant, id);
  if (!page) co_return co_await refuse(page.error(), reply);
  co_await show(std::move(*page), reply);
}

Awaitable<void> Session::show(PageText page, HttpReply& reply) {
  const proxy::AnswerHead head{
      .status = page.status, .content_type = page.content_type, .headers = {}};
  co_await reply.answer(head, page.body);
}

// The page is part of the program, and larger than all others: it is sent as it lies there.
Awaitable<void> Session::describe(HttpReply& reply) {
  const proxy::AnswerHead head{.status = 200, .content_type = base::kJsonType, .headers = {}};
  co_await reply.answer(head, openapi_document());
}

Awaitable<void> Session::tell_options(const RequestHead& head, const Options& options,
                                      HttpReply& reply) {
  proxy::AnswerHead answer{.status = 204, .content_type = {}, .headers = {}};
  const bool all = head.target == "*";
  const std::string_view allow = all ? kAllMethods : options.allow;
  if (!allow.empty()) answer.headers.push_back({"allow", std::string(allow)});
  if (!head.origin.empty()) {
    answer.headers.push_back({"access-control-allow-methods", std::string(kAllMethods)});
    answer.headers.push_back({"access-control-allow-headers",
                              head.asked_headers.empty() ? "*" : std::string(head.asked_headers)});
    answer.headers.push_back({"access-control-max-age", "86400"});
  }
  co_await reply.answer(answer, {});
}

}  // namespace penstock::http
