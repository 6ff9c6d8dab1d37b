// One try of a request: where it went, its call, and what it was told there. A request makes one
// after the other, as long as its client has seen nothing; those that are over are kept with what
// they were told, the one under way with its call.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "routing/replica_set.h"
#include "upstream/call.h"

namespace penstock::proxy {

// What a request may be sent to.
struct Target {
  std::string id;                             // as logs and headers name it
  std::string address;                        // host:port of its Inference service
  std::shared_ptr<routing::Replica> replica;  // that stands behind it
};

struct Attempt {
  explicit Attempt(const std::shared_ptr<routing::Replica>& replica)
      : target{replica->id().value, replica->address(), replica} {}

  std::unique_ptr<upstream::Call> call;  // null: it is over
  Target target;
  std::vector<v1::TokenGroup> groups;  // that it gave, once it is over
};

}  // namespace penstock::proxy
