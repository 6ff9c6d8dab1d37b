#include "microserving_service.h"

#include <utility>

#include "call_stream.h"
#include "callers_token.h"
#include "penstock/v1/microserving.grpc.pb.h"
#include "refusal.h"
#include "split_handler.h"
#include "unary_call.h"

namespace penstock::replica {
namespace {

using M = v1::MicroServing;

// Unary requests are passed on as they came.
using RawMethods = M::WithRawCallbackMethod_Tokenize<
    M::WithRawCallbackMethod_PrepRecv<M::WithRawCallbackMethod_RemoteSend<
        M::WithRawCallbackMethod_Commit<M::WithRawCallbackMethod_Release<
            M::WithRawCallbackMethod_Lookup<M::WithCallbackMethod_StartGenerate<
                M::WithCallbackMethod_KeepRouterTokens<M::Service>>>>>>>>;

class Service final : public RawMethods {
 public:
  Service(const std::string& token, std::shared_ptr<Inbox> inbox, Switchboard* switchboard,
          ControlDesk* control_desk)
      : token_(token),
        inbox_(std::move(inbox)),
        switchboard_(switchboard),
        control_desk_(control_desk) {}

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return unary(context, "Tokenize", *request, reply);
  }

  grpc::ServerUnaryReactor* PrepRecv(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return unary(context, "PrepRecv", *request, reply);
  }

  grpc::ServerUnaryReactor* RemoteSend(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* reply) override {
    return unary(context, "RemoteSend", *request, reply);
  }

  grpc::ServerUnaryReactor* Commit(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override {
    return unary(context, "Commit", *request, reply);
  }

  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* reply) override {
    return unary(context, "Release", *request, reply);
  }

  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override {
    return unary(context, "Lookup", *request, reply);
  }

  grpc::ServerWriteReactor<v1::CallEvent>* StartGenerate(
      grpc::CallbackServerContext* context, const v1::StartGenerateRequest* request) override {
    const grpc::Status status = admit(*context);
    if (!status.ok()) return new Refusal<grpc::ServerWriteReactor<v1::CallEvent>>(status);
    v1::CallRequest call;
    call.set_request_id(request->call().request_id());
    call.set_traceparent(request->call().traceparent());
    call.set_method("POST");
    call.set_path(std::string(kMicroServingPath) + "StartGenerate");
    call.set_body(request->SerializeAsString());
    return new CallStream(switchboard_, call);
  }

  grpc::ServerUnaryReactor* KeepRouterTokens(grpc::CallbackServerContext* context,
                                             const v1::KeepRouterTokensRequest* request,
                                             v1::KeepRouterTokensReply* reply) override {
    if (const auto status = token_.check(*context); !status.ok()) return refuse(context, status);
    return control_desk_->pass_on(context, Inbox::Kind::kTokens, *request, reply);
  }

 private:
  grpc::Status admit(const grpc::CallbackServerContext& context) const {
    grpc::Status status = token_.check(context);
    if (!status.ok() || !inbox_->full()) return status;
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too many bytes of requests wait here"};
  }

  grpc::ServerUnaryReactor* unary(grpc::CallbackServerContext* context, const std::string& method,
                                  const grpc::ByteBuffer& request, grpc::ByteBuffer* reply) {
    if (const grpc::Status status = admit(*context); !status.ok()) return refuse(context, status);
    return new UnaryCall(switchboard_, std::string(kMicroServingPath) + method, request, reply);
  }

  const CallersToken token_;
  const std::shared_ptr<Inbox> inbox_;
  Switchboard* const switchboard_;
  ControlDesk* const control_desk_;
};

}  // namespace

std::unique_ptr<grpc::Service> microserving_service(const std::string& token,
                                                    std::shared_ptr<Inbox> inbox,
                                                    Switchboard* switchboard,
                                                    ControlDesk* control_desk) {
  return std::make_unique<Service>(token, std::move(inbox), switchboard, control_desk);
}

}  // namespace penstock::replica
