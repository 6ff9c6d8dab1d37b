#include "inference_server.h"

#include <stdexcept>
#include <utility>

#include "call_stream.h"
#include "callers_token.h"
#include "load_watch.h"
#include "microserving_service.h"
#include "python_handler.h"
#include "refusal.h"
#include "session.h"
#include "split_handler.h"

namespace penstock::replica {
namespace {

// Bodies are limited by the gateway; this only has to be above the highest limit that it can be
// given, 1 GiB, with the small ones that go in the same frame.
constexpr int kMaxMessageBytes = (1 << 30) + (64 << 20);
// Sessions, load watches, and calls of tools.
constexpr int kMaxConcurrentStreams = 4096;
// Gateways ping idle sessions to find silent network loss.
constexpr int kMinPingIntervalMs = 1000;

std::string health_detail(v1::ReplicaState state) {
  if (state == v1::REPLICA_STATE_STARTING) return "the engine is loading or warming up";
  if (state == v1::REPLICA_STATE_DRAINING) return "draining: finishes its calls, takes no new ones";
  if (state == v1::REPLICA_STATE_ASLEEP) return "asleep: takes no calls until it is woken";
  return "";
}

void configure(const ServerOptions& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  // Else two replicas may share a port by mistake.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                              static_cast<int>(options.keepalive.count()));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              static_cast<int>(options.keepalive_timeout.count()));
  // Else the second ping to a client without data would never be sent.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

}  // namespace

// All methods but Session, which reads its frames as bytes.
using I = v1::Inference;
using TypedMethods =
    I::WithCallbackMethod_Call<I::WithCallbackMethod_WatchLoad<I::WithCallbackMethod_Health<
        I::WithCallbackMethod_Adapters<I::WithCallbackMethod_Metrics<I::WithCallbackMethod_Drain<
            I::WithCallbackMethod_Sleep<I::WithCallbackMethod_Wake<I::Service>>>>>>>>;

// Every method asks for the callers' token first.
class InferenceServer::Service final
    : public v1::Inference::WithRawCallbackMethod_Session<TypedMethods> {
 public:
  Service(const std::string& token, const std::shared_ptr<Inbox>& inbox, InferenceServer* server)
      : token_(token),
        inbox_(inbox),
        switchboard_(&server->switchboard_),
        load_board_(&server->load_board_),
        control_desk_(&server->control_desk_) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Session(
      grpc::CallbackServerContext* context) override {
    const grpc::Status status = token_.check(*context);
    if (!status.ok()) {
      return new Refusal<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>(status);
    }
    return new replica::Session(switchboard_, load_board_, inbox_, context->peer());
  }

  grpc::ServerWriteReactor<v1::CallEvent>* Call(grpc::CallbackServerContext* context,
                                                const v1::CallRequest* request) override {
    grpc::Status status = token_.check(*context);
    if (status.ok() && inbox_->full()) {
      status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many bytes of requests wait here"};
    }
    if (!status.ok()) return new Refusal<grpc::ServerWriteReactor<v1::CallEvent>>(status);
    return new CallStream(switchboard_, *request);
  }

  grpc::ServerWriteReactor<v1::Load>* WatchLoad(grpc::CallbackServerContext* context,
                                                const v1::WatchLoadRequest* /*request*/) override {
    const grpc::Status status = token_.check(*context);
    if (!status.ok()) return new Refusal<grpc::ServerWriteReactor<v1::Load>>(status);
    return LoadWatch::start(load_board_, switchboard_);
  }

  // Live and ready are answered here, so that they are told even while Python imports a model.
  grpc::ServerUnaryReactor* Health(grpc::CallbackServerContext* context,
                                   const v1::HealthRequest* request,
                                   v1::HealthReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    const v1::ReplicaState state = switchboard_->state();
    const bool ready = state == v1::REPLICA_STATE_READY;
    if (request->depth() == v1::HEALTH_DEPTH_DEEP && ready) {
      return control_desk_->pass_on(context, Inbox::Kind::kHealth, *request, reply);
    }
    reply->set_ok(ready || request->depth() <= v1::HEALTH_DEPTH_LIVE);
    reply->set_state(state);
    if (!reply->ok()) reply->set_detail(health_detail(state));
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* Adapters(grpc::CallbackServerContext* context,
                                     const v1::AdaptersRequest* request,
                                     v1::AdaptersReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kAdapters, *request, reply);
  }

  grpc::ServerUnaryReactor* Metrics(grpc::CallbackServerContext* context,
                                    const v1::MetricsRequest* request,
                                    v1::MetricsReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kMetrics, *request, reply);
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request, v1::DrainReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kDrain, *request, reply);
  }

  grpc::ServerUnaryReactor* Sleep(grpc::CallbackServerContext* context,
                                  const v1::SleepRequest* request, v1::SleepReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kSleep, *request, reply);
  }

  grpc::ServerUnaryReactor* Wake(grpc::CallbackServerContext* context,
                                 const v1::WakeRequest* request, v1::WakeReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kWake, *request, reply);
  }

 private:
  const CallersToken token_;
  const std::shared_ptr<Inbox> inbox_;
  Switchboard* const switchboard_;
  LoadBoard* const load_board_;
  ControlDesk* const control_desk_;
};

InferenceServer::InferenceServer(const ServerOptions& options, const std::shared_ptr<Inbox>& inbox)
    : python_(std::make_shared<PythonHandler>(inbox)),
      switchboard_(python_, [this] { load_board_.changed(); }),
      load_board_([this](v1::Load* load) { switchboard_.tell_figures(load); }),
      control_desk_(inbox),
      service_(std::make_unique<Service>(options.callers_token, inbox, this)),
      microserving_(
          microserving_service(options.callers_token, inbox, &switchboard_, &control_desk_)) {
  v1::Load starting;
  starting.set_state(v1::REPLICA_STATE_STARTING);
  set_load(starting);
  grpc::ServerBuilder builder;
  configure(options, &builder);
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  builder.RegisterService(microserving_.get());
  server_ = builder.BuildAndStart();
  if (!server_ || port == 0) {
    throw std::runtime_error("cannot listen on " + options.listen +
                             ": is the address right and free?");
  }
  address_ = options.listen.substr(0, options.listen.rfind(':')) + ":" + std::to_string(port);
}

InferenceServer::~InferenceServer() { stop(std::chrono::milliseconds(0)); }

void InferenceServer::answer_with(std::shared_ptr<CallHandler> engine) {
  switchboard_.set_handler(std::make_shared<SplitHandler>(python_, std::move(engine)));
}

void InferenceServer::set_load(const v1::Load& load) {
  switchboard_.set_state(load.state());
  load_board_.set(load);
}

v1::Load InferenceServer::load() {
  v1::Load load = load_board_.load();
  switchboard_.tell_calls(nullptr, &load);
  return load;
}

void InferenceServer::stop(std::chrono::milliseconds grace) {
  if (!server_) return;
  control_desk_.close();
  switchboard_.unwatch();
  load_board_.stop();
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
}

}  // namespace penstock::replica
