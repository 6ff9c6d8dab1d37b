#include "control_plane/deep_health.h"

#include <algorithm>
#include <utility>

#include "penstock/v1/inference.grpc.pb.h"

namespace penstock::control_plane {
namespace {

using Verdict = DeepAnswer::Verdict;

constexpr std::chrono::seconds kAskedEvery{10};
constexpr std::chrono::minutes kAnswerCounts{10};  // what was answered before says nothing
constexpr std::chrono::seconds kForgetsEvery{1};
constexpr std::chrono::seconds kHealthPatience{15};  // a replica gives itself ten
constexpr unsigned kAskedAtOnce = 64;

grpc::ChannelArguments replica_channel() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

// gRPC's own words name addresses, and who looks may be a client.
std::string why_no_answer(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return "no answer: it cannot be reached";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "no answer within " + std::to_string(kHealthPatience.count()) + " s";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "no answer: it does not take the gateway's token";
    default:
      return "no answer: gRPC status " + std::to_string(status.error_code());
  }
}

}  // namespace

// One call, on a connection of its own: it is asked seldom.
struct DeepHealth::Asked {
  Asked(const DeepTarget& replica, const std::string& token)
      : key(replica.replica_id, replica.address),
        stub(v1::Inference::NewStub(grpc::CreateCustomChannel(
            replica.address, grpc::InsecureChannelCredentials(), replica_channel()))) {
    context.set_deadline(std::chrono::system_clock::now() + kHealthPatience);
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  }

  Key key;
  std::unique_ptr<v1::Inference::Stub> stub;
  grpc::ClientContext context;
  v1::HealthReply reply;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::HealthReply>> reader;

  DeepAnswer answer(base::SteadyTime now) const {
    if (!status.ok()) return {Verdict::kUnwell, why_no_answer(status), {}, now};
    const bool ready = reply.state() == v1::REPLICA_STATE_READY;
    const Verdict failed = ready ? Verdict::kUnwell : Verdict::kUnknown;
    return {reply.ok() ? Verdict::kWell : failed, reply.detail(),
            std::chrono::microseconds(reply.latency_us()), now};
  }
};

DeepHealth::DeepHealth(const base::Clock& clock, std::string cluster_token, TokenFor token_for)
    : clock_(clock), cluster_token_(std::move(cluster_token)), token_for_(token_for) {}

DeepHealth::~DeepHealth() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, known] : known_) {
      if (known.under_way) known.under_way->context.TryCancel();
    }
  }
  answers_.Shutdown();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    hear();  // nothing: but gRPC wants to be told that
  }
}

std::vector<DeepAnswer> DeepHealth::look(const std::vector<DeepTarget>& replicas) {
  const auto now = clock_.steady_now();
  const std::lock_guard lock(mutex_);
  forget_old(now);
  std::vector<DeepAnswer> answers;
  std::vector<std::pair<base::SteadyTime, const DeepTarget*>> due;
  for (const DeepTarget& replica : replicas) {
    const auto found = known_.find({replica.replica_id, replica.address});
    answers.push_back(found == known_.end() ? DeepAnswer{} : found->second.answer);
    if (found == known_.end()) {
      due.emplace_back(base::SteadyTime{}, &replica);
    } else if (!found->second.waits && now - found->second.asked >= kAskedEvery) {
      due.emplace_back(found->second.asked, &replica);
    }
  }
  std::ranges::sort(due);  // where there are many, all have their turn
  for (const auto& [asked, replica] : due) wish_for(*replica, now);
  return answers;
}

// The thread that looks is a client's: it makes no connections.
void DeepHealth::wish_for(const DeepTarget& replica, base::SteadyTime now) {
  if (waiting_ >= kAskedAtOnce || stopping_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { hear(); });
  if (wishes_.empty()) bell_.Set(&answers_, std::chrono::system_clock::now(), nullptr);
  wishes_.push_back(replica);
  Known& known = known_[{replica.replica_id, replica.address}];
  known.asked = now;
  known.waits = true;
  ++waiting_;
}

void DeepHealth::hear() {
  void* tag = nullptr;
  bool ok = false;
  while (answers_.Next(&tag, &ok)) {
    if (tag == nullptr) {
      ask_all();
    } else {
      note(*static_cast<const Asked*>(tag));
    }
  }
}

void DeepHealth::ask_all() {
  std::vector<DeepTarget> wishes;
  {
    const std::lock_guard lock(mutex_);
    wishes = std::exchange(wishes_, {});
  }
  v1::HealthRequest request;
  request.set_depth(v1::HEALTH_DEPTH_DEEP);
  request.set_behind(true);
  for (const DeepTarget& replica : wishes) {
    auto call = std::make_shared<Asked>(replica, token_for_(cluster_token_, replica));
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    call->reader = call->stub->AsyncHealth(&call->context, request, &answers_);
    call->reader->Finish(&call->reply, &call->status, call.get());
    known_.at(call->key).under_way = std::move(call);
  }
}

void DeepHealth::note(const Asked& asked) {
  std::shared_ptr<Asked> call;  // ends its connection without the lock
  const std::lock_guard lock(mutex_);
  Known& known = known_.at(asked.key);
  call = std::move(known.under_way);
  known.answer = call->answer(clock_.steady_now());
  known.waits = false;
  --waiting_;
}

void DeepHealth::forget_old(base::SteadyTime now) {
  if (now < forgets_at_) return;  // a page looks once for each deployment
  forgets_at_ = now + kForgetsEvery;
  std::erase_if(known_, [now](const auto& entry) {
    return !entry.second.waits && now - entry.second.asked >= kAnswerCounts;
  });
}

}  // namespace penstock::control_plane
