#include "control_plane/report_client.h"

#include <algorithm>
#include <utility>

#include "penstock/v1/routes.grpc.pb.h"

namespace penstock::control_plane {

namespace {

constexpr std::chrono::milliseconds kLastWords{1'000};  // for the head to take the last report
constexpr std::chrono::milliseconds kApart{100};        // reports, whatever hurries

}  // namespace

ReportClient::ReportClient(std::string gateway_id, HeadChannel head, const base::Clock& clock,
                           Fill fill, Hear hear, std::chrono::milliseconds interval)
    : gateway_id_(std::move(gateway_id)),
      head_(std::move(head)),
      clock_(clock),
      fill_(std::move(fill)),
      hear_(std::move(hear)),
      interval_(interval) {}

ReportClient::~ReportClient() { stop(); }

void ReportClient::start() {
  if (head_) thread_ = std::thread([this] { run(); });
}

void ReportClient::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWords, [this] { return call_ == nullptr; });
    if (call_ != nullptr) call_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

void ReportClient::hurry() {
  {
    const std::lock_guard lock(mutex_);
    hurried_ = true;
  }
  changed_.notify_all();
}

void ReportClient::run() {
  do {
    report_until_broken();
  } while (wait());
}

void ReportClient::report_until_broken() {
  grpc::ClientContext context;
  head_.authorize(context);
  // Who waits for a connection looks for it; else gRPC does every five seconds.
  context.set_wait_for_ready(true);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    call_ = &context;
  }
  const auto stub = penstock::v1::Routes::NewStub(head_.channel);
  const auto stream = stub->Report(&context);
  std::thread reader([this, &stream] { hear_all(*stream); });
  penstock::v1::GatewayReport report;
  // The last one tells what came up to the end: nothing that was counted is lost by a stop.
  for (bool last = false;;) {
    report.Clear();
    report.set_gateway_id(gateway_id_);
    report.set_at_ms(base::unix_ms(clock_.wall_now()));
    report.set_takes_replies(true);
    fill_(report);
    if (!stream->Write(report) || last) break;
    last = !wait();
  }
  // The head need not answer for this to end: a stop cancels the call after a while.
  stream->WritesDone();
  reader.join();
  stream->Finish();
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  changed_.notify_all();
}

// Until the call ends. Reports are written meanwhile: an older head answers none of them.
void ReportClient::hear_all(Stream& stream) {
  penstock::v1::GatewayReportReply reply;
  while (stream.Read(&reply)) hear_(reply);
}

bool ReportClient::wait() {
  std::unique_lock lock(mutex_);
  // However much there is to tell, the head is not told all the time.
  const auto apart = std::min(kApart, interval_);
  changed_.wait_for(lock, apart, [this] { return stopping_; });
  changed_.wait_for(lock, interval_ - apart, [this] { return stopping_ || hurried_; });
  hurried_ = false;
  return !stopping_;
}

}  // namespace penstock::control_plane
