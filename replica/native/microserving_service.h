// The gRPC service `MicroServing`. Its methods are calls as those of `Inference` are, and Python
// answers them: penstock/replica/engine_calls/.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "control_desk.h"
#include "inbox.h"
#include "switchboard.h"

namespace penstock::replica {

// Every method asks for `token` first. All that is pointed to outlives the service.
std::unique_ptr<grpc::Service> microserving_service(const std::string& token,
                                                    std::shared_ptr<Inbox> inbox,
                                                    Switchboard* switchboard,
                                                    ControlDesk* control_desk);

}  // namespace penstock::replica
