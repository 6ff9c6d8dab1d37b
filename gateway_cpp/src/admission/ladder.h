// What is tried for a request that a deployment cannot answer, before its client is told so: the
// rungs of the deployment's ladder, one after the other. Pure: which rungs there are is the
// route's, what a deployment can honour is the caller's to say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "routing/route_snapshot.h"

namespace penstock::admission {

// Why a deployment cannot answer, where another way may be open: what is wrong with the request or
// its tenant is none of these.
enum class DegradeReason : std::uint8_t {
  kTokenBudget,    // its prompt is longer than the deployment takes
  kContextLength,  // its prompt is longer than the model takes
  kBudget,         // as DropReason has these
  kScaledToZero,
  kFailed,
  kNoReadyReplica,
  kModelLoading,
  kMemoryPressure,
  kQueueFull,
  kWaitExceeded,
  kQueueDeadline,
  kEngineDead,      // engines died under it, or may have
  kUpstreamFailed,  // its replicas failed otherwise, before the first event
};
inline constexpr std::size_t kDegradeReasons = 13;
std::string_view name(DegradeReason reason);  // x-penstock-degraded, metrics, ladders

// The prompt is too long: what trimming mends.
bool is_too_long(DegradeReason reason);

// Why a request that would end with this error may be answered another way; nothing: it may not.
// `prompt_field`: where the endpoint's requests have their prompts.
std::optional<DegradeReason> degrade_reason(const base::Error& error,
                                            std::string_view prompt_field);

// One request's way down the ladder of the deployment that it asked for, by rungs that help with
// its reason. No rung comes twice, and no deployment either.
class LadderWalk {
 public:
  // Whether the deployment can honour the request.
  using Fits = std::function<bool(const std::string& deployment)>;

  // `asked` outlives the walk.
  LadderWalk(const routing::DeploymentRoute& asked, DegradeReason reason);

  DegradeReason reason() const { return reason_; }
  // The rung that comes next, which counts as tried from now on; null: none is left. It is valid as
  // long as `asked`.
  const routing::Rung* next(const Fits& fits);
  // Whether next() has one.
  bool has_next(const Fits& fits) const;
  // The request was trimmed, and the deployment cannot answer it for another reason: the walk goes
  // on with that one's rungs.
  void turn_to(DegradeReason reason);

 private:
  const routing::Rung* find(const Fits& fits, std::size_t& at) const;
  bool was_tried(const routing::Rung& rung) const;

  const routing::DeploymentRoute* asked_;
  DegradeReason reason_;
  const std::vector<routing::Rung>* rungs_;  // for the reason; null: none
  std::size_t at_ = 0;                       // of these, those before it have had their turn
  std::vector<const routing::Rung*> tried_;
};

}  // namespace penstock::admission
