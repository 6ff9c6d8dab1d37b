// Who compares answers, played by the test.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control_plane/shadow_sink.h"

namespace penstock::proxy {

class KeptPairs final : public control_plane::ShadowSink {
 public:
  bool is_there() const override { return there; }
  bool has_room() const override { return room; }
  void offer(v1::ShadowPair pair, std::shared_ptr<const std::string> body) override {
    pair.set_body(*body);
    pairs.push_back(std::move(pair));
  }
  void reply(v1::ShadowReply reply) override { replies.push_back(std::move(reply)); }

  bool there = true;
  bool room = true;
  std::vector<v1::ShadowPair> pairs;
  std::vector<v1::ShadowReply> replies;
};

}  // namespace penstock::proxy
