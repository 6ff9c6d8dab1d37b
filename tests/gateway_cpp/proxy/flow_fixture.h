// A request flow between a client and replicas that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "dispatch/believed_routes.h"
#include "event_loop.h"
#include "fake_reply.h"
#include "fake_upstream.h"
#include "kept_pairs.h"
#include "kept_records.h"
#include "log_capture.h"
#include "proxy/program_links.h"
#include "proxy/request_flow.h"
#include "proxy/shadow_copies.h"
#include "proxy/shadow_questions.h"
#include "routing/snapshots.h"

namespace penstock::proxy {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Source = upstream::CallFailure::Source;

inline const std::string kStream = R"({"model":"mini","stream":true,"messages":[{}]})";
inline const std::string kUnary = R"({"model":"mini","messages":[{}]})";

// The last event of a stream.
inline const std::string kEnd = "data: [DONE]\n\n";

class RequestFlowTest : public testing::Test {
 protected:
  // `programs_dir`: where router programs are found; empty: nowhere.
  explicit RequestFlowTest(std::string programs_dir = {}) : programs_dir_(std::move(programs_dir)) {
    serve_from({"r1"});
  }
  ~RequestFlowTest() override {
    if (!done_) reply_.leave();
    loop_.poll();
  }

  void serve_from(const std::vector<std::string>& replicas,
                  routing::ReplicaState state = routing::ReplicaState::kReady) {
    auto deployment = routing::deployment("mini", {{"pirate", "pirate@1"}}, limits_);
    deployment.availability = availability_;
    deployment.availability_detail = "the test wants it so";
    deployment.expected_ready_at = expected_ready_at_;
    deployment.endpoints = endpoints_;
    deployment.selection_policy = "round_robin";  // nothing is left to chance
    routing::RouteSnapshot snapshot{
        .version = 1, .deployments = {deployment}, .replicas = {}, .ended_keys = ended_keys_};
    for (const auto& id : replicas) {
      snapshot.replicas.push_back(routing::replica(id, "mini", state));
    }
    routes_.replace(snapshot);
  }

  void ask(const std::string& body, const std::string& traceparent = "") {
    Ask ask;
    ask.traceparent = traceparent;
    ask.request_id = request_id_;
    ask.client_request_id = "theirs";
    ask.endpoint = endpoint_;
    ask.body = body;
    ask.received = clock_.steady_now();
    ask.caller = caller();
    loop_.spawn(run(std::move(ask)));
    loop_.poll();
  }

  // Likewise, with a key that has these limits of a day.
  void ask_with_key(const std::string& key_id, const admission::DayAmount& per_day = {}) {
    Ask ask;
    ask.request_id = "req_1";
    ask.endpoint = endpoint_;
    ask.body = kUnary;
    ask.received = clock_.steady_now();
    ask.caller = caller();
    ask.caller.key_id = key_id;
    ask.caller.key_per_day = per_day;
    loop_.spawn(run(std::move(ask)));
    loop_.poll();
  }

  // Who comes without a key.
  admission::Caller caller() {
    return std::get<admission::Caller>(tenant_reader_.find("", clock_.wall_now()));
  }

  runtime::Awaitable<void> run(Ask ask) {
    co_await flow_.run(ask, reply_);
    done_ = true;
  }
  runtime::Awaitable<void> run_for(FakeReply& reply, Ask ask) { co_await flow_.run(ask, reply); }

  // Another client asks. `reply` must leave or be answered before it goes.
  void ask_as(FakeReply& reply, const std::string& body) {
    Ask ask;
    ask.request_id = "req_other";
    ask.endpoint = endpoint_;
    ask.body = body;
    ask.received = clock_.steady_now();
    ask.caller = caller();
    loop_.spawn(run_for(reply, std::move(ask)));
    loop_.poll();
  }

  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    timers_.advance(clock_.steady_now());
    routes_.advance();
    flow_.look_for_suspects();
    flow_.look_for_ended_keys();
    flow_.look_for_replicas();
    loop_.poll();
  }

  FakeUpstream::Opened& call(size_t i = 0) { return *upstream_.calls.at(i); }
  // Calls of ours that are under way on a replica.
  uint32_t in_flight(size_t i = 0) { return routes_.replica("mini", i).in_flight(); }
  // Whether anything speaks against it.
  bool is_down(const std::string& replica) { return routes_.is_down("mini", replica); }
  base::DeploymentTotals totals() { return metrics_.totals().at(0); }
  // How often `text` stands in the log written so far.
  size_t settled_lines() {
    log_text_ += log_.text();
    size_t count = 0;
    for (size_t at = 0; (at = log_text_.find("request settled", at)) != std::string::npos; ++at) {
      ++count;
    }
    return count;
  }

  test::EventLoop loop_;
  test::FixedClock clock_;
  test::LogCapture log_;
  std::string log_text_;
  base::GatewayConfig config_;
  observe::Tracer tracer_{{}, nullptr};
  base::Metrics metrics_;
  base::MetricsShard& shard_ = metrics_.add_shard();
  runtime::GatewayState state_;
  admission::Suspects suspects_{"gw-1", std::chrono::minutes(10)};
  runtime::TimerWheel timers_{clock_.steady_now()};
  openai::RequestParser parser_;
  routing::Limits limits_;
  base::Availability availability_ = base::Availability::kUnknown;
  base::WallTime expected_ready_at_{};
  std::vector<std::string> endpoints_;  // that the deployment serves
  std::vector<std::string> ended_keys_;
  const openai::Endpoint* endpoint_ = openai::find_endpoint("/v1/chat/completions");
  dispatch::BelievedRoutes routes_{clock_};
  admission::TenantTable tenants_;
  admission::TenantReader tenant_reader_{tenants_};
  admission::UsageBook usage_;
  FakeUpstream upstream_;
  runtime::SideThreads aside_{1};
  runtime::BodyBudget bodies_{1UL << 20U};
  runtime::BodyBudget answers_{1UL << 20U};
  runtime::BodyBudget resume_bytes_{1UL << 20U};
  admission::ShadowBook shadow_book_;
  runtime::BodyBudget shadow_bytes_{1UL << 20U};
  KeptPairs pairs_;
  admission::CanaryBook canaries_;
  const std::string programs_dir_;
  ProgramLink::Connect connect_;  // to a program's process
  admission::ProgramBook program_book_;
  control_plane::ProgramDirectory program_directory_{programs_dir_, log_.log()};
  ProgramLinks programs_{clock_, program_directory_, upstream_,
                         [this](const auto& seat, auto& owner) { return connect_(seat, owner); }};
  observe::RecordStore store_{0};
  RecordPool pool_;
  KeptRecords records_;
  const ThreadParts parts_{{clock_,        log_.log(), config_,         metrics_,
                            state_,        suspects_,  routes_.table(), routes_.dispatchers(),
                            tenants_,      usage_,     bodies_,         answers_,
                            resume_bytes_, aside_,     shadow_book_,    shadow_bytes_,
                            pairs_,        canaries_,  program_book_,   program_directory_,
                            store_,        tracer_,    &records_},
                           shard_,
                           timers_,
                           parser_,
                           routes_.routes(),
                           routes_.dispatch(),
                           upstream_,
                           loop_.io().get_executor(),
                           programs_,
                           {clock_, log_.log(), shard_, state_, pool_, &records_}};
  ShadowCopies shadows_{parts_};
  ShadowQuestions questions_{parts_};
  RequestFlow flow_{parts_, shadows_};
  std::string request_id_ = "req_1";
  FakeReply reply_;
  bool done_ = false;
};

}  // namespace penstock::proxy
