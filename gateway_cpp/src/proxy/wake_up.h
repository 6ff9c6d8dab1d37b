// Wakes a request that waits for its turn with a deployment.
#pragma once

#include "dispatch/turn.h"
#include "runtime/wake_up.h"

namespace penstock::proxy {

class WakeUp final : public dispatch::Waker, public runtime::WakeUp {
 public:
  using runtime::WakeUp::WakeUp;

  void wake() override { post(); }
};

}  // namespace penstock::proxy
