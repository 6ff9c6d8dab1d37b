#include "http/status_thread.h"

#include <boost/asio/post.hpp>

namespace penstock::http {

namespace {

constexpr uint32_t kConnections = 64;
constexpr std::chrono::seconds kQuiet{1};  // between ticks while there is no client

}  // namespace

StatusThread::StatusThread(const PortParts& parts, int socket)
    : clock_(parts.clock),
      timers_(parts.clock.steady_now()),
      shard_(own_.add_shard()),
      routes_(parts.route_table),
      dispatchers_(parts.all_dispatchers),
      parts_(parts),
      pages_(parts_, routes_, dispatchers_, parts.subscription, parts.look_deeply),
      max_connections_(kConnections),
      services_{parts,    shard_,  connections_, ids_, pages_, parts.status_doors,
                waiting_, nullptr, nullptr},
      sessions_(io_, services_, parts.log),
      listener_(io_, socket, max_connections_, sessions_, services_, {readiness_, timers_, sends_},
                parts.log, [this] { before_clients(); }) {
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
