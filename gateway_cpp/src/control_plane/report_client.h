// Tells the head about once a second what this gateway sees of each deployment. Counts are since
// the start, so a report that is lost loses nothing; a head that is away costs a retry each second.
// What the head answers is heard. Owned by main; a thread of its own, and one that reads.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "control_plane/head_channel.h"
#include "penstock/v1/routes.pb.h"

namespace penstock::control_plane {

class ReportClient {
 public:
  // Fills the numbers of a report; gateway_id and at_ms are set already. Called on this client's
  // thread.
  using Fill = std::function<void(penstock::v1::GatewayReport&)>;
  // Takes what the head answers a report with: nothing, from an older one. Called on a thread that
  // only reads.
  using Hear = std::function<void(const penstock::v1::GatewayReportReply&)>;

  ReportClient(std::string gateway_id, HeadChannel head, const base::Clock& clock, Fill fill,
               Hear hear, std::chrono::milliseconds interval = std::chrono::seconds(1));
  ReportClient(const ReportClient&) = delete;
  ReportClient& operator=(const ReportClient&) = delete;
  ~ReportClient();

  void start();  // does nothing without a head
  void stop();   // idempotent
  // There is news that should not wait for the next report: it is told within a tenth of a
  // second. Any thread.
  void hurry();

 private:
  using Stream =
      grpc::ClientReaderWriter<penstock::v1::GatewayReport, penstock::v1::GatewayReportReply>;

  void run();
  void report_until_broken();
  void hear_all(Stream& stream);
  bool wait();  // one interval, or until there is a hurry; false if stopping

  const std::string gateway_id_;
  const HeadChannel head_;
  const base::Clock& clock_;
  const Fill fill_;
  const Hear hear_;
  const std::chrono::milliseconds interval_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool hurried_ = false;
  grpc::ClientContext* call_ = nullptr;
  std::thread thread_;
};

}  // namespace penstock::control_plane
