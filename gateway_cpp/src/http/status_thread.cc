#include "http/status_thread.h"

#include <boost/asio/post.hpp>

namespace penstock::http {

namespace {

constexpr uint32_t kConnections = 64;
constexpr std::chrono::seconds kQuiet{1};  // between ticks while there is no client

}  // namespace

StatusThread::StatusThread(const Subject& subject, int socket)
    : clock_(subject.clock),
      timers_(subject.clock.steady_now()),
      shard_(own_.add_shard()),
      routes_(subject.routes),
      dispatchers_(subject.dispatchers),
      pages_(subject.metrics, subject.state, routes_, dispatchers_, subject.usage,
             subject.subscription, {subject.bodies, subject.answers}, subject.shadows),
      max_connections_(kConnections),
      services_{subject.clock, subject.log, subject.config, shard_,        subject.state,
                connections_,  ids_,        pages_,         subject.doors, subject.bodies,
                waiting_,      nullptr,     nullptr},
      sessions_(io_, services_, subject.log),
      listener_(io_, socket, max_connections_, sessions_, services_, {readiness_, timers_, sends_},
                subject.log, [this] { before_clients(); }) {
  listener_.start();
  ticker_.start();
  thread_ = std::thread([this] { io_.run(); });
}

StatusThread::~StatusThread() {
  asio::post(io_, [this] {
    listener_.stop();
    sessions_.abort();
    ticker_.stop();
    asio::post(io_, [this] { io_.stop(); });
  });
  thread_.join();
}

std::chrono::milliseconds StatusThread::tick() {
  timers_.advance(clock_.steady_now());
  return connections_ == 0 ? kQuiet : runtime::TimerWheel::kTick;
}

// The thread may have ticked so seldom that its time is an old one.
void StatusThread::before_clients() {
  timers_.advance(clock_.steady_now());
  ticker_.hurry();
}

}  // namespace penstock::http
