// Carries what one replica's session tells of its load to the deployment's dispatcher: its load,
// its end, which is the first sign of the replica's death, and its silence, where a message is due
// each second. A new session's first load ends the doubt that a lost process brought: it came back.
// Later ones do not: one that fails its calls may well go on telling its load. A session
// that does not come up says that the replica serves nobody, until it tells a load. One I/O thread.
#pragma once

#include <memory>
#include <utility>

#include "base/clock.h"
#include "dispatch/dispatcher.h"
#include "upstream/replica_session.h"

namespace penstock::upstream {

class LoadWatch final : public LoadListener {
 public:
  LoadWatch(std::shared_ptr<dispatch::Dispatcher> dispatcher,
            std::shared_ptr<routing::Replica> replica, const base::Clock& clock)
      : dispatcher_(std::move(dispatcher)), replica_(std::move(replica)), clock_(clock) {}

  void on_load(const v1::Load& load) override;
  void on_end() override;
  // For the next session: what the one before still says counts no more.
  std::shared_ptr<LoadWatch> succeed();
  // Speaks against a replica that has told nothing for long, though its session stands.
  void look_for_silence(base::SteadyTime now);
  const std::shared_ptr<routing::Replica>& replica() const { return replica_; }

 private:
  const std::shared_ptr<dispatch::Dispatcher> dispatcher_;
  const std::shared_ptr<routing::Replica> replica_;
  const base::Clock& clock_;
  bool retired_ = false;
  bool heard_ = false;       // on the session that stands
  base::SteadyTime last_{};  // when
};

routing::LoadReport report_of(const v1::Load& load);

}  // namespace penstock::upstream
