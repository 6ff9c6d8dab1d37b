#include "split_handler.h"

#include <vector>

namespace penstock::replica {
namespace {

// A call with a lease has to have it committed first.
bool is_for_python(const v1::CallRequest& request) {
  return request.path().starts_with(kMicroServingPath) || !request.kv().seq_id().empty();
}

}  // namespace

void SplitHandler::start(std::span<const CallPtr> calls) {
  std::vector<CallPtr> of_python;
  std::vector<CallPtr> of_engine;
  for (const CallPtr& call : calls) {
    call->for_python = is_for_python(call->request);
    (call->for_python ? of_python : of_engine).push_back(call);
  }
  if (!of_python.empty()) python_->start(of_python);
  if (!of_engine.empty()) engine_->start(of_engine);
}

void SplitHandler::room(std::span<const CallPtr> calls) {
  for (const CallPtr& call : calls) of(call).room({&call, 1});
}

}  // namespace penstock::replica
