// Sessions over real sockets, in front of replicas that the test plays.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "dispatch/believed_routes.h"
#include "event_loop.h"
#include "http/programs.h"
#include "http/session.h"
#include "http/session_group.h"
#include "http/shadows.h"
#include "http/waiting_sessions.h"
#include "log_capture.h"
#include "proxy/fake_upstream.h"
#include "proxy/program_links.h"
#include "proxy/shadow_copies.h"
#include "routing/snapshots.h"

namespace penstock::http {

using Tcp = asio::ip::tcp;

inline const std::string kBody = R"({"model":"mini","stream":true,"messages":[{}]})";

inline std::string post(const std::string& body, const std::string& headers = "") {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    routes_.replace({.version = 1,
                     .deployments = {routing::deployment("mini")},
                     .replicas = {routing::replica("r1", "mini")}});
    connect();
  }
  ~SessionTest() override {
    group_.abort();
    loop_.run_until([this] { return group_.size() == 0; });
  }

  // Makes `client_` a new connection with a session behind it.
  void connect(Welcome welcome = Welcome::kYes) { connect(client_, welcome); }
  // The same, with a client whose system takes so much at most before it reads.
  void connect_with_buffer(int bytes) {
    client_.close();
    client_ = Tcp::socket(loop_.io(), Tcp::v4());
    client_.set_option(asio::socket_base::receive_buffer_size(bytes));
    connect();
  }
  void connect(Tcp::socket& client, Welcome welcome = Welcome::kYes) {
    Tcp::acceptor acceptor(loop_.io(), Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    client.connect(acceptor.local_endpoint());
    client.non_blocking(true);
    start(accepted(acceptor), welcome);
  }

  void start(std::shared_ptr<Connection> connection, Welcome welcome) {
    ++state_.connections;
    group_.start(std::move(connection), welcome);
  }

  std::shared_ptr<Connection> accepted(Tcp::acceptor& acceptor) {
    return std::make_shared<Connection>(
        runtime::Descriptor(::accept(acceptor.native_handle(), nullptr, nullptr)), shared_,
        config_.write_timeout);
  }

  void send(const std::string& bytes) {
    ASSERT_EQ(::send(client_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  // Everything the client has read so far.
  const std::string& got() {
    std::array<char, 65536> part{};
    for (ssize_t n = 0; (n = ::recv(client_.native_handle(), part.data(), part.size(), 0)) >= 0;) {
      if (n == 0) {
        closed_ = true;
        break;
      }
      got_.append(part.data(), static_cast<size_t>(n));
    }
    return got_;
  }

  bool gets(const std::string& text) {
    return loop_.run_until([&] { return got().find(text) != std::string::npos; });
  }
  bool sees_the_end() {
    return loop_.run_until([&] { return static_cast<void>(got()), closed_; });
  }
  bool opens(size_t calls) {
    return loop_.run_until([&] { return upstream_.calls.size() == calls; });
  }
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    timers_.advance(clock_.steady_now());
    loop_.poll();
  }
  proxy::FakeUpstream::Opened& call(size_t i = 0) { return *upstream_.calls.at(i); }

  test::EventLoop loop_;
  runtime::Readiness readiness_{loop_.io()};
  test::FixedClock clock_;
  static base::GatewayConfig config() {
    base::GatewayConfig config;
    config.allow_hosts = {"a"};
    config.cors_origins = {"*"};
    return config;
  }

  test::LogCapture log_;
  base::GatewayConfig config_ = config();
  observe::Tracer tracer_{{}, nullptr};
  base::Metrics metrics_;
  base::MetricsShard& shard_ = metrics_.add_shard();
  runtime::GatewayState state_;
  admission::Suspects suspects_{"gw-1", std::chrono::minutes(10)};
  runtime::TimerWheel timers_{clock_.steady_now()};
  runtime::SendBatch sends_;
  const Connection::Shared shared_{readiness_, timers_, sends_};
  openai::RequestParser parser_;
  dispatch::BelievedRoutes routes_{clock_};
  admission::TenantTable tenants_;
  admission::TenantReader tenant_reader_{tenants_};
  admission::UsageBook usage_;
  proxy::FakeUpstream upstream_;
  runtime::SideThreads aside_{1};
  runtime::BodyBudget bodies_{64UL << 20U};
  runtime::BodyBudget answers_{64UL << 20U};
  runtime::BodyBudget resume_bytes_{1UL << 20U};
  Shadows kept_{config_, "instance"};
  admission::CanaryBook canaries_;
  observe::RecordStore store_{1UL << 20U};
  proxy::RecordPool records_;
  Programs programs_{"", log_.log()};
  proxy::ProgramLinks links_{clock_, programs_.directory, upstream_, {}};
  const proxy::ThreadParts parts_{
      {clock_,        log_.log(), config_,         metrics_,
       state_,        suspects_,  routes_.table(), routes_.dispatchers(),
       tenants_,      usage_,     bodies_,         answers_,
       resume_bytes_, aside_,     kept_.book,      kept_.kept,
       kept_.client,  canaries_,  programs_.book,  programs_.directory,
       store_,        tracer_,    &store_},
      shard_,
      timers_,
      parser_,
      routes_.routes(),
      routes_.dispatch(),
      upstream_,
      loop_.io().get_executor(),
      links_,
      {clock_, log_.log(), shard_, state_, records_, &store_}};
  proxy::ShadowCopies shadows_{parts_};
  bool broken_ = false;  // the pages throw, as nothing should
  proxy::RequestFlow flow_{parts_, shadows_};
  RequestIds ids_;
  StatusPages pages_{
      parts_, routes_.routes(), routes_.dispatch(),
      [this] {
        if (broken_) throw std::runtime_error("broken");
        return control_plane::SubscriptionState();
      },
      [](const auto& /*replicas*/) { return std::vector<control_plane::DeepAnswer>(); }};
  MachineName machine_{"", full_machine_name};
  Doors doors_{config_, machine_};
  WaitingSessions waiting_{timers_};
  Services services_{parts_,  shard_, state_.connections, ids_, pages_, doors_, waiting_,
                     nullptr, &flow_, &tenant_reader_};
  SessionGroup group_{loop_.io(), services_, log_.log()};
  Tcp::socket client_{loop_.io()};
  std::string got_;
  bool closed_ = false;
};

}  // namespace penstock::http
