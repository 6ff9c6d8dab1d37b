#include "inference_server.h"

#include <stdexcept>
#include <utility>

#include "call_stream.h"
#include "python_handler.h"
#include "session.h"

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
  return "";
}

void configure(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->SetMaxSendMessageSize(kMaxMessageBytes);
  // Else two replicas may share a port by mistake.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kMinPingIntervalMs);
}

}  // namespace

class InferenceServer::Service final : public v1::Inference::CallbackService {
 public:
  Service(Switchboard* switchboard, LoadBoard* load_board, ControlDesk* control_desk)
      : switchboard_(switchboard), load_board_(load_board), control_desk_(control_desk) {}

  grpc::ServerBidiReactor<v1::ClientFrame, v1::ServerFrame>* Session(
      grpc::CallbackServerContext* /*context*/) override {
    return new replica::Session(switchboard_);
  }

  grpc::ServerWriteReactor<v1::CallEvent>* Call(grpc::CallbackServerContext* /*context*/,
                                                const v1::CallRequest* request) override {
    return new CallStream(switchboard_, *request);
  }

  grpc::ServerWriteReactor<v1::Load>* WatchLoad(grpc::CallbackServerContext* /*context*/,
                                                const v1::WatchLoadRequest* /*request*/) override {
    return LoadWatch::start(load_board_);
  }

  // Live and ready are answered here, so that they are told even while Python imports a model.
  grpc::ServerUnaryReactor* Health(grpc::CallbackServerContext* context,
                                   const v1::HealthRequest* request,
                                   v1::HealthReply* reply) override {
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
    return control_desk_->pass_on(context, Inbox::Kind::kAdapters, *request, reply);
  }

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request, v1::DrainReply* reply) override {
    return control_desk_->pass_on(context, Inbox::Kind::kDrain, *request, reply);
  }

 private:
  Switchboard* const switchboard_;
  LoadBoard* const load_board_;
  ControlDesk* const control_desk_;
};

InferenceServer::InferenceServer(const std::string& listen, const std::shared_ptr<Inbox>& inbox)
    : switchboard_(std::make_shared<PythonHandler>(inbox)),
      control_desk_(inbox),
      service_(std::make_unique<Service>(&switchboard_, &load_board_, &control_desk_)) {
  v1::Load starting;
  starting.set_state(v1::REPLICA_STATE_STARTING);
  set_load(starting);
  grpc::ServerBuilder builder;
  configure(&builder);
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (!server_ || port == 0) {
    throw std::runtime_error("cannot listen on " + listen + ": is the address right and free?");
  }
  address_ = listen.substr(0, listen.rfind(':')) + ":" + std::to_string(port);
}

InferenceServer::~InferenceServer() { stop(std::chrono::milliseconds(0)); }

void InferenceServer::set_load(const v1::Load& load) {
  switchboard_.set_state(load.state());
  load_board_.set(load, std::chrono::steady_clock::now());
}

void InferenceServer::stop(std::chrono::milliseconds grace) {
  if (!server_) return;
  control_desk_.close();
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
}

}  // namespace penstock::replica
