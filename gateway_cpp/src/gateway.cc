#include "gateway.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "control_plane/deployment_reports.h"
#include "control_plane/suspect_codec.h"
#include "control_plane/tenant_codec.h"
#include "control_plane/usage_codec.h"
#include "http/listen_socket.h"
#include "upstream/callers_token.h"

namespace penstock {
namespace {

using control_plane::WithoutKeys;
using std::chrono::milliseconds;

constexpr milliseconds kSettle{100};
constexpr milliseconds kDrainTick{10};
constexpr milliseconds kLastWords{1'000};  // for clients to take the error that ends their answer
constexpr milliseconds kSeldom{1'000};  // looks for what nobody needs, or a predecessor still has

// Whoever reaches this machine's own address is let in, and elsewhere only who is meant to be.
WithoutKeys without_keys(const base::GatewayConfig& config) {
  return config.open || config.listen.is_loopback() ? WithoutKeys::kServed : WithoutKeys::kRefused;
}

std::string callers_token(const std::string& cluster_token,
                          const control_plane::DeepTarget& replica) {
  return replica.own_token ? upstream::callers_token(cluster_token, replica.replica_id)
                           : cluster_token;
}

std::string made_up_name() {
  std::random_device random;
  return std::to_string(::getpid()) + "-" + std::to_string(random()) + std::to_string(random());
}

}  // namespace

Gateway::Gateway(const base::GatewayConfig& config, const base::Address& address,
                 std::shared_ptr<const tls::Credentials> credentials)
    : config_(config),
      address_(address),
      log_(clock_, config_.log_level),
      dispatchers_(clock_, {.node = config_.node, .zone = config_.zone}, std::random_device{}()),
      tenants_(without_keys(config_) == WithoutKeys::kRefused),
      programs_(config_.programs_dir, log_),
      suspects_(config_.id, config_.quarantine, [this] { reports_.hurry(); }),
      bodies_(config_.body_budget_bytes, config_.body_share_bytes),
      answers_(config_.body_budget_bytes),
      resume_bytes_(config_.resume_budget_bytes),
      doors_(config_, machine_),
      status_doors_(config_, machine_, http::hosts_of_status_port(config_)),
      instance_(made_up_name()),
      descriptors_(http::raise_descriptor_limit()),
      snapshot_file_(config_.data_dir, config_.id, log_),
      head_(
          control_plane::connect_to_head(config_.control, config_.cluster_token, config_.head_ca)),
      deep_health_(clock_, config_.cluster_token, callers_token),
      shadows_(config_, instance_),
      explain_(config_, clock_.wall_now(), instance_, head_),
      tracer_({.sample = config_.trace_sample, .slow = config_.trace_slow},
              observe::make_sender([](const char* name) { return std::getenv(name); }, config_.id,
                                   config_.node, log_)),
      subscription_(config_.id, head_, snapshot_file_,
                    {routes_, dispatchers_, tenants_, suspects_, canaries_, without_keys(config_),
                     [this] { note_routes(); }},
                    clock_, log_),
      reports_(
          config_.id, head_, clock_, [this](auto& report) { fill_report(report); },
          [this](const auto& reply) { control_plane::hear_usage(reply, usage_); }) {
  if (config_.explain_budget_bytes > 0) sinks_.add(explain_.store);
  if (tracer_.rule().collects) sinks_.add(tracer_);
  if (credentials) tls_.emplace(config_, std::move(credentials), clock_, log_, aside_);
  on_signal();
  on_hangup();
}

http::PortParts Gateway::parts() {
  const proxy::GatewayParts parts{.clock = clock_,
                                  .log = log_,
                                  .config = config_,
                                  .all_metrics = metrics_,
                                  .state = state_,
                                  .suspects = suspects_,
                                  .route_table = routes_,
                                  .all_dispatchers = dispatchers_,
                                  .tenants = tenants_,
                                  .usage = usage_,
                                  .bodies = bodies_,
                                  .answers = answers_,
                                  .resume_bytes = resume_bytes_,
                                  .aside = aside_,
                                  .shadow_book = shadows_.book,
                                  .shadow_bytes = shadows_.kept,
                                  .shadow_sink = shadows_.client,
                                  .canaries = canaries_,
                                  .program_book = programs_.book,
                                  .program_directory = programs_.directory,
                                  .records = explain_.store,
                                  .tracer = tracer_,
                                  .record_sink = sinks_.empty() ? nullptr : &sinks_};
  return {parts,
          doors_,
          status_doors_,
          waiting_,
          shadows_,
          [this] { return subscription_.state(); },
          [this](const auto& replicas) { return deep_health_.look(replicas); },
          tls_ ? &tls_->port : nullptr};
}

std::string Gateway::listen() {
  limit_connections();
  for (unsigned i = 0; i < config_.threads; ++i) {
    const int socket = http::listen_on(address_);
    if (socket < 0) return "cannot listen on " + address_.text() + ": " + std::strerror(errno);
    threads_.emplace_back(parts(), i, socket);
  }
  if (config_.metrics.host.empty()) return {};
  const auto status = serve_status();
  // A predecessor on this port has the status port until it ends.
  return status || config_.share_port ? std::string() : status.error().message;
}

base::Result<base::Address> Gateway::serve_status() {
  auto address = http::claim_address("--metrics", config_.metrics, http::Claim::kAlone);
  if (!address) return address;
  const int socket = http::listen_on(*address);
  if (socket < 0) {
    return base::make_error(base::Kind::kConfig,
                            "cannot listen on " + address->text() + ": " + std::strerror(errno));
  }
  status_ = std::make_unique<http::StatusThread>(parts(), socket);
  log_.info("status port", {{"address", address->text()}});
  return address;
}

// The head may wait for all of us.
void Gateway::note_routes() {
  shadows_.point_at(routes_.current()->comparer());
  reports_.hurry();
}

void Gateway::limit_connections() {
  const uint64_t generation = routes_.generation();
  if (generation == limited_for_ && state_.max_connections.load() > 0) return;
  limited_for_ = generation;
  const size_t replicas = routes_.current()->replicas();
  state_.max_connections.store(
      http::connection_limit(config_.max_connections, descriptors_, config_.threads, replicas));
}

void Gateway::forget_metrics() {
  if (clock_.steady_now() < next_forget_) return;
  next_forget_ = clock_.steady_now() + kSeldom;
  const auto routes = routes_.current();
  metrics_.keep_only([&](const std::string& name) { return routes->deployments().contains(name); });
}

void Gateway::start() {
  tracer_.start();
  shadows_.client.start();
  subscription_.start();
  for (auto& thread : threads_) thread.start();
  reports_.start();
  explain_.client.start();
  log_.info("listening", {{"address", address_.text()},
                          {"pid", ::getpid()},
                          {"gateway_id", config_.id},
                          {"threads", config_.threads},
                          {"tls", tls_.has_value()},
                          {"version", base::version()}});
}

void Gateway::on_signal() {
  signals_.async_wait([this](boost::system::error_code ec, int signal) {
    if (ec) return;
    note_signal(signal);
    on_signal();
  });
}

// A terminal that closes says nothing about the clients; who means something by it means this.
void Gateway::on_hangup() {
  hangups_.async_wait([this](boost::system::error_code ec, int /*signal*/) {
    if (ec) return;
    if (tls_) tls_->watch.reload();
    on_hangup();
  });
}

// SIGTERM drains; another one says that somebody else listens. Two interrupts, or SIGQUIT: now.
void Gateway::note_signal(int signal) {
  asked_ += signal == SIGTERM ? 1 : 2;
  cut_short_ |= signal == SIGQUIT || (signal == SIGINT && ++interrupts_ > 1);
}

// One turn of main's own thread: a signal, or the slow tick.
void Gateway::turn(milliseconds at_most) {
  control_.run_one_for(at_most);
  if (tls_) tls_->watch.look();
  limit_connections();
  forget_metrics();
  if (status_ || config_.metrics.host.empty() || clock_.steady_now() < next_status_) return;
  next_status_ = clock_.steady_now() + kSeldom;
  const auto ignored = serve_status();
}

void Gateway::wait_for_signal() {
  while (asked_ == 0) turn(programs_.look(*routes_.current(), clock_.steady_now()));
}

void Gateway::stop_accepting() {
  log_.info("draining",
            {{"connections", state_.connections.load()}, {"deadline_ms", config_.drain.count()}});
  state_.draining.store(true);  // reports say so: another gateway is to listen first
  const auto deadline = clock_.steady_now() + config_.handover;
  while (asked_ < 2 && clock_.steady_now() < deadline) turn(kDrainTick);
  for (auto& thread : threads_) thread.drain();
}

bool Gateway::wait_until_idle() {
  const auto deadline = clock_.steady_now() + config_.drain;
  // A client that was just taken is counted only after its thread has come to it.
  turn(kSettle);
  while (state_.connections.load() > 0 && !cut_short_ && clock_.steady_now() < deadline) {
    turn(kDrainTick);
  }
  return state_.connections.load() == 0;
}

void Gateway::end_what_runs() {
  log_.warning("ending what still runs", {{"connections", state_.connections.load()}});
  state_.ending.store(true);
  for (auto& thread : threads_) thread.end_soon();
  const auto deadline = clock_.steady_now() + kLastWords;
  while (state_.connections.load() > 0 && clock_.steady_now() < deadline) turn(kDrainTick);
}

void Gateway::stop() {
  log_.info("stopping", {{"connections_cut", state_.connections.load()},
                         {"requests_cut", state_.requests_cut.load()}});
  status_.reset();
  for (auto& thread : threads_) thread.join();
  explain_.client.stop();
  reports_.stop();
  subscription_.stop();
  shadows_.client.stop();
  tracer_.stop();
}

void Gateway::fill_report(v1::GatewayReport& report) {
  const auto routes = subscription_.state();
  report.set_snapshot_version(routes.version);
  *report.mutable_stamp() = routes.stamp;
  report.set_draining(state_.draining.load());
  report.set_bytes_sent(metrics_.bytes_sent());
  report.set_pid(static_cast<uint32_t>(::getpid()));
  report.set_connections(state_.connections.load());
  control_plane::add_suspects(suspects_.unshown(clock_.wall_now()), report);
  control_plane::add_deployments(metrics_.totals(), report);
  control_plane::add_standings(*routes_.current(), *dispatchers_.current(), report);
  control_plane::add_programs(*routes_.current(), programs_.facts(clock_.steady_now()), report);
  report.set_instance(instance_);
  if (!config_.metrics.host.empty()) report.set_metrics_address(config_.metrics.text());
  control_plane::add_usage(usage_, report);
  control_plane::add_canaries(canaries_.rows(), report);
  control_plane::add_streams(*tenants_.current(), report);
}

}  // namespace penstock
