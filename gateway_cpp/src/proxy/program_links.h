// What one I/O thread has with the router programs beside its gateway: a stream for each
// deployment, opened on first use, and the last words of requests to engines. Its thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "control_plane/program_directory.h"
#include "proxy/program_link.h"
#include "runtime/signal.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

class ProgramLinks {
 public:
  ProgramLinks(const base::Clock& clock, const control_plane::ProgramDirectory& directory,
               upstream::Upstream& upstream, ProgramLink::Connect connect)
      : clock_(clock), directory_(directory), upstream_(upstream), connect_(std::move(connect)) {}

  // To whom that program of the deployment is asked; null: nobody beside this gateway runs it.
  std::shared_ptr<ProgramLink> to(const std::string& uid, std::string_view digest);
  // A last word to a replica, which no request waits for.
  void tell(const upstream::ReplicaAddress& replica, const upstream::CallRequest& request);
  // Lets go of what nobody needs. With each tick of the thread's timers.
  void tick();

 private:
  struct Entry {
    std::shared_ptr<ProgramLink> link;  // null: none was needed so far
    base::Backoff backoff;
    base::SteadyTime next_start{};
  };
  struct LastWord {
    std::unique_ptr<upstream::Call> call;
    base::SteadyTime until;
  };

  const base::Clock& clock_;
  const control_plane::ProgramDirectory& directory_;
  upstream::Upstream& upstream_;
  const ProgramLink::Connect connect_;
  runtime::Signal nobody_;
  std::map<std::string, Entry> entries_;  // by uid
  std::vector<LastWord> last_words_;
};

}  // namespace penstock::proxy
