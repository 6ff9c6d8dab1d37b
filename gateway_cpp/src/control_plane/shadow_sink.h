// Who takes pairs of answers over, to be compared. Any thread; never waits.
#pragma once

#include <memory>
#include <string>

#include "penstock/v1/shadow.pb.h"

namespace penstock::control_plane {

class ShadowSink {
 public:
  virtual ~ShadowSink() = default;
  // Whether anybody compares: nothing need be repeated else.
  virtual bool is_there() const = 0;
  // Whether it keeps up with what it is offered: more would be dropped else.
  virtual bool has_room() const = 0;
  // Counts the pair, now or once it is taken over. `body`: its request's.
  virtual void offer(v1::ShadowPair pair, std::shared_ptr<const std::string> body) = 0;
  // What a question of its own came to.
  virtual void reply(v1::ShadowReply reply) = 0;
};

}  // namespace penstock::control_plane
