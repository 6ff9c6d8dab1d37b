#include "http/io_thread.h"

#include <boost/asio/post.hpp>

namespace penstock::http {

namespace {

constexpr std::chrono::milliseconds kLeadInterval{100};
constexpr std::chrono::seconds kSweepInterval{1};

}  // namespace

IoThread::IoThread(const PortParts& parts, unsigned index, int socket)
    : clock_(parts.clock),
      led_(index == 0 ? &parts.all_dispatchers : nullptr),
      timers_(parts.clock.steady_now()),
      metrics_(parts.all_metrics.add_shard()),
      routes_(parts.route_table),
      dispatchers_(parts.all_dispatchers),
      tenants_(parts.tenants),
      pool_(io_, sends_, parts.clock,
            {.credit_bytes = parts.config.stream_credit_bytes,
             .token = parts.config.cluster_token,
             .gateway_id = parts.config.id},
            {.index = index, .threads = parts.config.threads}, parts.all_dispatchers, metrics_,
            parts.log),
      programs_(parts.clock, parts.program_directory, pool_,
                [this](const auto& seat, auto& owner) {
                  return upstream::connect_to_program(io_, seat.address, seat.token, owner);
                }),
      parts_{
          parts,     metrics_,
          timers_,   parser_,
          routes_,   dispatchers_,
          pool_,     io_.get_executor(),
          programs_, {parts.clock, parts.log, metrics_, parts.state, records_, parts.record_sink}},
      pages_(parts_, routes_, dispatchers_, parts.subscription, parts.look_deeply),
      shadows_(parts_),
      questions_(parts_),
      flow_(parts_, shadows_),
      services_{parts,       metrics_, parts.state.connections, ids_,   pages_,
                parts.doors, waiting_, &parts.waiting,          &flow_, &tenants_,
                parts.tls},
      sessions_(io_, services_, parts.log),
      listener_(io_, socket, parts.state.max_connections, sessions_, services_,
                {readiness_, timers_, sends_}, parts.log) {
  parts.waiting.add(io_, waiting_);
  parts.shadows.threads.add([this](v1::ShadowQuestion question) { ask(std::move(question)); });
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
  flow_.look_for_replicas();
  pool_.tick();
  programs_.tick();
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
