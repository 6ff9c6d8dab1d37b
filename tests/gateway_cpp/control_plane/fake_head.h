// A head in this process, with routes that the test chooses.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fake_service.h"
#include "penstock/v1/routes.grpc.pb.h"

namespace penstock::control_plane {

class FakeHead final : public test::FakeService<penstock::v1::Routes::Service> {
 public:
  FakeHead() { start(); }
  ~FakeHead() override { kill(); }

  // Sends `snapshot` to whoever watches, now and later.
  void publish(const penstock::v1::RouteSnapshot& snapshot) {
    const std::lock_guard lock(mutex_);
    snapshots_.push_back(snapshot);
    changed_.notify_all();
  }

  // Read them inside wait_for, or after the client has stopped.
  std::vector<penstock::v1::WatchRoutesRequest> watches;
  std::vector<penstock::v1::GatewayReport> reports;
  std::string authorization;                          // of the last watch
  std::atomic<bool> answers = false;                  // each report; an older head answers none
  std::vector<penstock::v1::ExplainReply> explained;  // of all streams, in their order
  std::atomic<bool> knows_explain = true;
  std::atomic<bool> hears = true;  // else the first reply of a stream alone

  // Asks whoever has the stream open, now or next.
  void ask(const penstock::v1::ExplainQuestion& question) {
    const std::lock_guard lock(mutex_);
    questions_.push_back(question);
    changed_.notify_all();
  }

 private:
  grpc::Status Watch(grpc::ServerContext* context, const penstock::v1::WatchRoutesRequest* request,
                     grpc::ServerWriter<penstock::v1::RouteSnapshot>* writer) override {
    std::unique_lock lock(mutex_);
    watches.push_back(*request);
    authorization = authorization_of(*context);
    changed_.notify_all();
    std::size_t sent = 0;
    while (!context->IsCancelled()) {
      // The newest one only, as the real head does.
      if (sent < snapshots_.size()) {
        sent = snapshots_.size();
        if (!writer->Write(snapshots_.back())) break;
      }
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    return grpc::Status::OK;
  }

  grpc::Status Report(grpc::ServerContext* /*context*/,
                      grpc::ServerReaderWriter<penstock::v1::GatewayReportReply,
                                               penstock::v1::GatewayReport>* stream) override {
    penstock::v1::GatewayReport report;
    while (stream->Read(&report)) {
      const std::lock_guard lock(mutex_);
      reports.push_back(report);
      changed_.notify_all();
      if (answers) stream->Write(reply_to(report));
    }
    return grpc::Status::OK;
  }

  grpc::Status Explain(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<penstock::v1::ExplainQuestion,
                                                penstock::v1::ExplainReply>* stream) override {
    if (!knows_explain) return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "older");
    std::thread reader([this, stream, context] {
      penstock::v1::ExplainReply reply;
      while (stream->Read(&reply)) {
        std::unique_lock lock(mutex_);
        explained.push_back(reply);
        changed_.notify_all();
        while (!hears && !context->IsCancelled()) {
          changed_.wait_for(lock, std::chrono::milliseconds(20));
        }
      }
    });
    {
      std::unique_lock lock(mutex_);
      while (!context->IsCancelled()) {
        for (; !questions_.empty(); questions_.pop_front()) stream->Write(questions_.front());
        changed_.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
    reader.join();
    return grpc::Status::OK;
  }

  // That it was so when the report was made.
  static penstock::v1::GatewayReportReply reply_to(const penstock::v1::GatewayReport& report) {
    penstock::v1::GatewayReportReply reply;
    reply.set_as_of_ms(report.at_ms());
    return reply;
  }

  std::vector<penstock::v1::RouteSnapshot> snapshots_;
  std::deque<penstock::v1::ExplainQuestion> questions_;
};

// One deployment with one ready replica.
inline penstock::v1::RouteSnapshot snapshot_of(std::uint64_t version, const std::string& name) {
  penstock::v1::RouteSnapshot snapshot;
  snapshot.set_version(version);
  auto& deployment = *snapshot.add_deployments();
  deployment.set_name(name);
  deployment.set_model("weights/" + name);
  deployment.set_created(1700000000);
  deployment.set_max_model_len(2048);
  auto& adapter = *deployment.add_aliases();
  adapter.set_alias("pirate");
  adapter.set_adapter("pirate@1");
  auto& replica = *snapshot.add_replicas();
  replica.set_id(name + "-1");
  replica.set_deployment(name);
  replica.set_address("127.0.0.1:1");
  replica.set_state(penstock::v1::REPLICA_STATE_READY);
  replica.set_capacity(4);
  replica.add_adapters("pirate@1");
  return snapshot;
}

}  // namespace penstock::control_plane
