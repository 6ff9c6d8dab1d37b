#include "http/session.h"

#include <utility>
#include <variant>

#include "openai/errors.h"

namespace penstock::http {

namespace {

constexpr std::string_view kJson = "application/json";
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

base::Error wrong_method(const Incoming& request, std::string_view allow) {
  return base::make_error(base::Kind::kMethodNotAllowed, "The method " + request.method +
                                                             " is not for this path. It takes " +
                                                             std::string(allow) + ".");
}

base::Error unknown_path(const Incoming& request) {
  constexpr size_t kShown = 200;  // of a hostile path
  return base::make_error(base::Kind::kPathNotFound,
                          "There is nothing at " + request.method + " " +
                              request.target.substr(0, kShown) +
                              ". The API begins with /v1, as in /v1/chat/completions.");
}

base::Error too_many_clients() {
  auto error = base::make_error(base::Kind::kOverloaded,
                                "This gateway has as many connections as it may. Try again.");
  error.retry_after = std::chrono::seconds(1);
  return error;
}

}  // namespace

Session::Session(std::shared_ptr<Connection> connection, Services& services, Welcome welcome)
    : connection_(std::move(connection)),
      services_(services),
      welcome_(welcome),
      reader_(*connection_, limits_of(services.config)) {}

Awaitable<void> Session::run() {
  KeepAlive keep_alive = KeepAlive::kYes;
  while (keep_alive == KeepAlive::kYes) {
    if (services_.state.draining.load(std::memory_order_relaxed)) reader_.hurry(kDrainGrace);
    auto outcome = co_await reader_.next();
    if (std::holds_alternative<NoMore>(outcome)) break;
    if (const auto* error = std::get_if<base::Error>(&outcome)) {
      services_.metrics.bad_requests.add();
      co_await refuse_unread(*error);
      break;
    }
    keep_alive = co_await handle(std::get<Incoming>(std::move(outcome)));
  }
  co_await connection_->linger();
  connection_->close();
}

void Session::drain() { reader_.hurry(kDrainGrace); }

Awaitable<KeepAlive> Session::handle(Incoming request) {
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, {id, request, services_.config.cors_origin});
  if (services_.state.draining.load(std::memory_order_relaxed)) reply.close_after();
  if (welcome_ == Welcome::kYes) {
    co_await dispatch(request, id, reply);
  } else {
    reply.close_after();
    const base::Error error = too_many_clients();
    co_await refuse(error, reply);
  }
  connection_->end_answer();
  co_return reply.complete() && !connection_->gone() ? reply.keep_alive() : KeepAlive::kNo;
}

Awaitable<void> Session::dispatch(Incoming& request, std::string_view id, HttpReply& reply) {
  const Match matched = match(request.method, request.target);
  if (std::holds_alternative<Preflight>(matched)) co_return co_await preflight(request, reply);
  if (const auto* wrong = std::get_if<WrongMethod>(&matched)) {
    auto error = wrong_method(request, wrong->allow);
    reply.allow(wrong->allow);
    co_return co_await refuse(error, reply);
  }
  const auto* found = std::get_if<Found>(&matched);
  if (found == nullptr) {
    const base::Error error = unknown_path(request);
    co_return co_await refuse(error, reply);
  }
  switch (found->page) {
    case Page::kChatCompletions:
    case Page::kCompletions:
      co_return co_await generate(*found, request, id, reply);
    case Page::kModels:
      co_return co_await show(services_.pages.models(), reply);
    case Page::kModel: {
      auto page = services_.pages.model(found->model_id);
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

Awaitable<void> Session::generate(const Found& found, Incoming& request, std::string_view id,
                                  HttpReply& reply) {
  if (!may_be_json(request.content_type)) {
    auto error = base::make_error(base::Kind::kUnsupportedMediaType,
                                  "The content type `" + request.content_type.substr(0, 100) +
                                      "` is not taken here. Send application/json.");
    co_return co_await refuse(error, reply);
  }
  proxy::Ask ask;
  ask.request_id = std::string(id);
  ask.client_request_id = request.client_request_id;
  ask.traceparent = std::move(request.traceparent);
  ask.endpoint = endpoint_of(found.page);
  ask.path = found.path;
  ask.body = std::move(request.body);
  ask.received = services_.clock.steady_now();
  co_await services_.flow.run(std::move(ask), reply);
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
  const Incoming nothing{};
  const std::string id = services_.ids.next();
  HttpReply reply(*connection_, {id, nothing, services_.config.cors_origin});
  reply.close_after();
  co_await refuse(error, reply);
}

Awaitable<void> Session::preflight(const Incoming& request, HttpReply& reply) {
  proxy::AnswerHead head{.status = 204, .content_type = {}, .headers = {}};
  if (!services_.config.cors_origin.empty()) {
    head.headers.push_back({"access-control-allow-methods", "GET, POST, OPTIONS"});
    head.headers.push_back({"access-control-allow-headers",
                            request.asked_headers.empty() ? "*" : request.asked_headers});
    head.headers.push_back({"access-control-max-age", "86400"});
  }
  co_await reply.answer(head, {});
}

}  // namespace penstock::http
