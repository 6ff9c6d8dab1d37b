#include "http/io_thread.h"

#include <boost/asio/post.hpp>

namespace penstock::http {

namespace {

constexpr std::chrono::milliseconds kLeadInterval{100};
constexpr std::chrono::seconds kSweepInterval{1};

}  // namespace

IoThread::IoThread(const Shared& shared, unsigned index, int socket)
    : clock_(shared.clock),
      led_(index == 0 ? &shared.dispatchers : nullptr),
      timers_(shared.clock.steady_now()),
      metrics_(shared.metrics.add_shard()),
      routes_(shared.routes),
      dispatchers_(shared.dispatchers),
      tenants_(shared.tenants),
      pool_(io_, sends_, shared.clock,
            {.credit_bytes = shared.config.stream_credit_bytes,
             .token = shared.config.cluster_token,
             .gateway_id = shared.config.id},
            {.index = index, .threads = shared.config.threads}, shared.dispatchers, metrics_,
            shared.log),
      pages_(shared.metrics, shared.state, routes_, dispatchers_, shared.usage, shared.subscription,
             {shared.bodies, shared.answers}, shared.shadows),
      shadows_({shared.clock, shared.log, shared.config, timers_, routes_, dispatchers_,
                shared.usage, pool_, shared.suspects, shared.shadows.book, shared.shadows.kept,
                shared.shadows.client, io_.get_executor()}),
      questions_(shadows_.parts(), shared.tenants, parser_),
      flow_({shared.clock, shared.log, shared.config, metrics_, shared.state, shared.suspects,
             timers_, parser_, routes_, dispatchers_, shared.usage, pool_, shared.aside,
             shared.answers, io_.get_executor(), shadows_}),
      services_{shared.clock,  shared.log,   shared.config,
                metrics_,      shared.state, shared.state.connections,
                ids_,          pages_,       shared.doors,
                shared.bodies, waiting_,     &shared.waiting,
                &flow_,        &tenants_,    shared.tls},
      sessions_(io_, services_, shared.log),
      listener_(io_, socket, shared.state.max_connections, sessions_, services_,
                {readiness_, timers_, sends_}, shared.log) {
  shared.waiting.add(io_, waiting_);
  shared.shadows.threads.add([this](v1::ShadowQuestion question) { ask(std::move(question)); });
}

// From whatever thread.
void IoThread::ask(v1::ShadowQuestion question) {
  asio::post(io_, [this, question = std::move(question)] { questions_.ask(question); });
}

IoThread::~IoThread() { join(); }

void IoThread::start() {
  listener_.start();
  ticker_.start();
  thread_ = std::thread([this] { io_.run(); });
}

void IoThread::drain() {
  asio::post(io_, [this] {
    listener_.stop();
    sessions_.drain();
  });
}

void IoThread::end_soon() {
  asio::post(io_, [this] { sessions_.end_soon(); });
}

void IoThread::join() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    listener_.stop();
    sessions_.abort();
    shadows_.stop();
    questions_.stop();
    ticker_.stop();
    // After what the sessions still have to do.
    asio::post(io_, [this] { io_.stop(); });
  });
  thread_.join();
}

std::chrono::milliseconds IoThread::tick() {
  const auto now = clock_.steady_now();
  timers_.advance(now);
  flow_.look_for_suspects();
  flow_.look_for_ended_keys();
  pool_.tick();
  if (led_ != nullptr && now >= next_lead_) {
    next_lead_ = now + kLeadInterval;
    led_->advance();
  }
  if (now >= next_sweep_) {
    next_sweep_ = now + kSweepInterval;
    pool_.sweep();
  }
  return runtime::TimerWheel::kTick;
}

}  // namespace penstock::http
