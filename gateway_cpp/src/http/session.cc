#include "http/session.h"

#include <exception>
#include <utility>

#include "openai/errors.h"

namespace penstock::http {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr size_t kLongestId = 128;
constexpr size_t kShown = 200;  // of a hostile path
// What an idle connection still gets when the gateway drains: its next request may be on its way.
constexpr std::chrono::milliseconds kDrainGrace{500};

ReadLimits limits_of(const base::GatewayConfig& config) {
  return {.head_bytes = config.header_limit_bytes,
          .body_bytes = config.body_limit_bytes,
          .head_timeout = config.header_timeout,
          .body_timeout = config.body_timeout,
          .idle_timeout = config.idle_timeout};
}

openai::Endpoint endpoint_of(Page page) {
  return page == Page::kCompletions ? openai::Endpoint::kCompletions
                                    : openai::Endpoint::kChatCompletions;
}

bool takes_a_body(Page page) {
  return page == Page::kChatCompletions || page == Page::kCompletions;
}

bool is_status_page(Page page) {
  return page == Page::kLivez || page == Page::kReadyz || page == Page::kMetrics;
}

base::Error wrong_method(const RequestHead& head, std::string_view allow) {
  return base::make_error(base::Kind::kMethodNotAllowed, "The method " + std::string(head.method) +
                                                             " is not for this path. It takes " +
                                                             std::string(allow) + ".");
}

base::Error wrong_content_type(const RequestHead& head) {
  return base::make_error(base::Kind::kUnsupportedMediaType,
                          "The content type `" + std::string(head.content_type.substr(0, 100)) +
                              "` is not taken here. Send application/json.");
}

base::Error too_many_clients() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway has as many connections as it may. Try again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

base::Error our_fault() {
  return base::make_error(base::Kind::kInternal,
                          "This gateway failed at the request. Its log says how.");
}

}  // namespace

bool WaitingSessions::make_room() {
  for (List* list : {&never_asked, &idle}) {
    if (list->empty()) continue;
    Session& session = list->front();
    list->pop_front();
    session.give_way();
    return true;
  }
  return false;
}

Session::Session(std::shared_ptr<Connection> connection, Services& services, Welcome welcome)
    : connection_(std::move(connection)),
      services_(services),
      welcome_(welcome),
      reader_(*connection_, limits_of(services.config)) {}

Awaitable<void> Session::run() {
  KeepAlive keep_alive = KeepAlive::kYes;
  while (keep_alive == KeepAlive::kYes) {
    if (services_.state.draining.load(std::memory_order_relaxed)) reader_.hurry(kDrainGrace);
    wait_in_line();
    const auto outcome = co_await reader_.next();
    waiting_link.unlink();
    has_asked_ = true;
    if (std::holds_alternative<NoMore>(outcome)) break;
    if (const auto* error = std::get_if<base::Error>(&outcome)) {
      co_await refuse_unread(*error);
      break;
    }
    keep_alive = co_await handle(std::get<RequestHead>(outcome));
  }
  co_await end();
}

void Session::wait_in_line() {
  WaitingSessions& waiting = services_.waiting;
  (has_asked_ ? waiting.idle : waiting.never_asked).push_back(*this);
}

// A client that must see its answer cut off gets a reset, once its system has what was sent.
Awaitable<void> Session::end() {
  if (cut_off_) {
    co_await connection_->hand_over();
  } else {
    connection_->set_ending(Connection::Ending::kClean);
    co_await connection_->linger();
  }
  connection_->close();
}

void Session::drain() { reader_.hurry(kDrainGrace); }

Awaitable<KeepAlive> Session::handle(const RequestHead& head) {
  using Progress = HttpReply::Progress;
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, {id, head, services_.config.cors_origin});
  if (services_.state.draining.load(std::memory_order_relaxed)) reply.close_after();
  std::string broken;
  try {
    co_await respond(head, id, reply);
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
  if (cut_off_) connection_->set_ending(Connection::Ending::kReset);
  co_return KeepAlive::kNo;
}

// Nothing of a body is read before the head has passed everything that it can fail.
Awaitable<void> Session::respond(const RequestHead& head, std::string_view id, HttpReply& reply) {
  const Match matched = match(head.method, head.target);
  const auto refused = refusal(head, matched);
  const auto* found = std::get_if<Found>(&matched);
  const bool reads = !refused && found != nullptr && takes_a_body(found->page);
  // A body that is not read ends no request.
  if (welcome_ == Welcome::kNo || (head.has_body() && !reads)) reply.close_after();
  if (refused) {
    if (const auto* wrong = std::get_if<WrongMethod>(&matched)) reply.allow(wrong->allow);
    co_return co_await refuse(*refused, reply);
  }
  if (found == nullptr) co_return co_await preflight(head, reply);
  co_await dispatch(head, *found, id, reply);
}

Session::Refused Session::refusal(const RequestHead& head, const Match& matched) const {
  if (welcome_ == Welcome::kNo) return too_many_clients();
  if (auto closed = services_.doors.refusal(head)) return closed;
  if (std::holds_alternative<Preflight>(matched)) return std::nullopt;
  if (const auto* wrong = std::get_if<WrongMethod>(&matched)) {
    return wrong_method(head, wrong->allow);
  }
  const auto* found = std::get_if<Found>(&matched);
  if (found == nullptr) return no_such_page(head);
  const bool is_status_port = services_.flow == nullptr;
  const bool is_here = is_status_port ? is_status_page(found->page) : found->page != Page::kMetrics;
  if (!is_here) return no_such_page(head);
  if (takes_a_body(found->page) && !is_json(head)) return wrong_content_type(head);
  return std::nullopt;
}

base::Error Session::no_such_page(const RequestHead& head) const {
  std::string message = "There is nothing at " + std::string(head.method) + " " +
                        std::string(head.target.substr(0, kShown)) + ". ";
  const base::Address& status = services_.config.metrics;
  if (services_.flow == nullptr) {
    message += "This port has /metrics, /livez and /readyz.";
  } else if (!head.target.starts_with("/metrics")) {
    message += "The API begins with /v1, as in /v1/chat/completions.";
  } else if (status.host.empty()) {
    message += "Start the gateway with --metrics HOST:PORT, and its metrics are there.";
  } else {
    message += "The metrics are at " + status.text() + ".";
  }
  return base::make_error(base::Kind::kPathNotFound, std::move(message));
}

Awaitable<void> Session::dispatch(const RequestHead& head, const Found& found, std::string_view id,
                                  HttpReply& reply) {
  switch (found.page) {
    case Page::kChatCompletions:
    case Page::kCompletions:
      co_return co_await generate(found, head, id, reply);
    case Page::kModels:
      co_return co_await show(services_.pages.models(), reply);
    case Page::kModel: {
      auto page = services_.pages.model(found.model_id);
      if (!page) co_return co_await refuse(page.error(), reply);
      co_return co_await show(std::move(*page), reply);
    }
    case Page::kLivez:
      co_return co_await show(services_.pages.live(), reply);
    case Page::kReadyz:
      co_return co_await show(services_.pages.ready(), reply);
    case Page::kMetrics:
      co_return co_await show(services_.pages.metrics(), reply);
  }
}

Awaitable<void> Session::generate(const Found& found, const RequestHead& head, std::string_view id,
                                  HttpReply& reply) {
  proxy::Ask ask;
  ask.share = proxy::BodyShare(services_.bodies);
  const auto unreadable = co_await reader_.body(head, ask.share, ask.body);
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
  ask.client_request_id = std::string(head.request_id.substr(0, kLongestId));
  ask.traceparent = std::string(head.traceparent.substr(0, kLongestId));
  ask.endpoint = endpoint_of(found.page);
  ask.path = found.path;
  ask.received = services_.clock.steady_now();
  co_await services_.flow->run(std::move(ask), reply);
}

Awaitable<void> Session::show(PageText page, HttpReply& reply) {
  const proxy::AnswerHead head{
      .status = page.status, .content_type = page.content_type, .headers = {}};
  co_await reply.answer(head, page.body);
}

Awaitable<void> Session::refuse(const base::Error& error, HttpReply& reply) {
  const proxy::AnswerHead head{
      .status = error.status, .content_type = kJson, .headers = openai::error_headers(error)};
  const std::string body = openai::error_body(error);
  co_await reply.answer(head, body);
}

// What was read is not to be trusted: nothing of it is used, and nothing after it is read.
Awaitable<void> Session::refuse_unread(const base::Error& error) {
  services_.metrics.bad_requests.add();
  const RequestHead nothing{};
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, {id, nothing, services_.config.cors_origin});
  reply.close_after();
  co_await refuse(error, reply);
}

// The last resort, for a fault of our own: the client is told, by a status or in its stream.
Awaitable<void> Session::tell_broken(std::string_view what, HttpReply& reply) {
  services_.metrics.broken_requests.add();
  services_.log.error("a request ended by an exception", {{"error", what}});
  reply.close_after();
  const base::Error error = our_fault();
  if (reply.progress() == HttpReply::Progress::kNone && !reply.streams()) {
    co_return co_await refuse(error, reply);
  }
  if (!reply.streams() || reply.progress() > HttpReply::Progress::kBegun) co_return;
  upstream::Payload payload;
  payload.append(openai::error_event(error));
  if (reply.write(payload, proxy::Piece::kCutOff) == Sent::kBlocked) co_await reply.flush();
}

Awaitable<void> Session::preflight(const RequestHead& head, HttpReply& reply) {
  proxy::AnswerHead answer{.status = 204, .content_type = {}, .headers = {}};
  answer.headers.push_back({"allow", "GET, HEAD, POST, OPTIONS"});
  if (!services_.config.cors_origin.empty()) {
    answer.headers.push_back({"access-control-allow-methods", "GET, POST, OPTIONS"});
    answer.headers.push_back({"access-control-allow-headers",
                              head.asked_headers.empty() ? "*" : std::string(head.asked_headers)});
    answer.headers.push_back({"access-control-max-age", "86400"});
  }
  co_await reply.answer(answer, {});
}

}  // namespace penstock::http
