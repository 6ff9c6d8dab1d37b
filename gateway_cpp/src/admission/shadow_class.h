// Which requests are repeated for our own sake, and what became of those: the class below every
// priority. Pure: which are sampled follows from the rule's seed and the request's id or session,
// so that it can be told afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "admission/tenants.h"
#include "routing/route_snapshot.h"

namespace penstock::admission {

// Whose usage shadows are: no tenant has such a name.
inline constexpr std::string_view kShadowTenant = "_shadow";

// As engines order by: far behind what any client may ask for.
inline constexpr int kShadowPriority = 1'000;

// What became of one that was sampled, as the comparer and the metrics are told.
enum class ShadowOutcome : std::uint8_t {
  kPaired,         // the comparer has both answers
  kBodyBudget,     // no room to keep its body
  kRate,           // the rule's of a minute is used up
  kConcurrency,    // as many of the rule are under way as may
  kCandidateBusy,  // no replica had room in time
  kPreempted,      // a client needed its place
  kBudget,         // of the rule, or of the deployment that was to answer it
  kNotComparable,  // it cannot be answered as it was asked
  kNotAllowed,     // to see what its tenant asks
  kNoComparer,     // nobody is there who compares
  kOverload,       // the comparer was behind with too many
};
inline constexpr std::size_t kShadowOutcomes = 11;
std::string_view name(ShadowOutcome outcome);

// What a rule looks at. Views outlive the look.
struct ShadowAsk {
  std::string_view model;  // as the client named it: "deployment" or "deployment:alias"
  std::string_view request_id;
  std::string_view session;  // what the requests of its conversation say alike; empty: nothing
  std::string_view tenant;   // id; empty: no key
  std::string_view path;     // of the endpoint
};

// Whether a rule of the deployment `primary` samples the request.
bool is_sampled(const routing::ShadowRule& rule, std::string_view primary, const ShadowAsk& ask);
// Of one that is: whether the primary is asked again, too.
bool is_asked_again(const routing::ShadowRule& rule, const ShadowAsk& ask);

// Whether the deployment may not see what the tenant asks. Where a provider answers, it leaves the
// house. `may_degrade`: the request itself does not rule that out.
bool is_kept_from(const Tenant& tenant, bool may_degrade, const routing::DeploymentRoute& there);

}  // namespace penstock::admission
