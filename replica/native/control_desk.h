// The unary requests that only Python can answer, from their arrival until its reply.
// Owned by the server; any thread may call anything.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "inbox.h"

namespace penstock::replica {

class ControlDesk {
 public:
  explicit ControlDesk(std::shared_ptr<Inbox> inbox) : inbox_(std::move(inbox)) {}

  // Passes the request on; the reactor finishes when the reply is there.
  template <class Request, class Reply>
  grpc::ServerUnaryReactor* pass_on(grpc::CallbackServerContext* context, Inbox::Kind kind,
                                    const Request& request, Reply* reply) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    file(kind, request.SerializeAsString(),
         [reactor, reply](const grpc::Status& status, std::string_view bytes) {
           reply->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
           reactor->Finish(status);
         });
    return reactor;
  }

  // Replies to a request with a serialised message; unknown keys are ignored.
  void reply(uint64_t key, std::string_view bytes);
  // Fails a request with this message for a person.
  void refuse(uint64_t key, const std::string& message);
  // Fails all that wait, and all that come later.
  void close();

 private:
  using Finish = std::function<void(const grpc::Status&, std::string_view)>;
  void file(Inbox::Kind kind, std::string request, Finish finish);
  void settle(uint64_t key, const grpc::Status& status, std::string_view bytes);

  const std::shared_ptr<Inbox> inbox_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Finish> waiting_;
  uint64_t next_key_ = 1;
  bool closed_ = false;
};

}  // namespace penstock::replica
