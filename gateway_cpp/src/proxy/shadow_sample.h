// What a sampled request leaves behind for its shadows: what was asked, and what its client was
// answered. Its I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admission/shadow_class.h"
#include "admission/tenants.h"
#include "openai/request.h"
#include "penstock/v1/shadow.pb.h"
#include "proxy/kept_answer.h"
#include "routing/route_table.h"
#include "runtime/body_budget.h"
#include "upstream/call_event.h"
#include "upstream/large_body.h"

namespace penstock::proxy {

class ShadowCopies;

struct ShadowSample {
  ShadowSample(ShadowCopies& copies, runtime::BodyBudget& budget)
      : to(copies), body_share(budget), answer(budget) {}

  struct Sampled {
    std::shared_ptr<const routing::ShadowRule> rule;
    bool is_asked_again = false;  // of the primary, too
  };

  ShadowCopies& to;  // where it goes once its request has settled
  std::vector<Sampled> rules;
  routing::Route named;  // that the request was for
  std::shared_ptr<const admission::Tenant> tenant;
  bool may_degrade = true;
  const openai::Endpoint* endpoint = nullptr;
  runtime::BodyShare body_share;
  KeptAnswer answer;  // its client's

  // ---- once it has settled
  openai::Request request;
  upstream::SharedBody body;
  v1::ShadowPair pair;  // but for rule, body and what the shadow answers
};

// As pairs tell it; what is too long for that is as long as they can.
uint32_t microseconds_of(std::chrono::nanoseconds time);
// What an answer cost. Of a deployment whose replicas do not reckon: by its prices.
void tell(const upstream::Usage& usage, const routing::DeploymentRoute& deployment,
          v1::Usage& told);

}  // namespace penstock::proxy
