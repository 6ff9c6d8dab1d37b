// A flow whose requests are aboard engines that die, here and elsewhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flow_fixture.h"

namespace penstock::proxy {

class VerdictsTest : public RequestFlowTest {
 protected:
  void engine_dies(size_t i = 0, const std::string& code = "engine_dead") {
    call(i).fail(503, code, v1::FAULT_UPSTREAM, v1::RETRY_NEVER);
  }
  // A client of its own for each request, as far as the flow can tell.
  void ask_again(const std::string& body) {
    EXPECT_TRUE(done_);
    done_ = false;
    reply_.text.clear();
    reply_.status = 0;
    ask(body);
  }
  admission::Fingerprint fingerprint(const std::string& body) {
    return admission::fingerprint_of("", "/v1/chat/completions", body);
  }
  void die_elsewhere(std::vector<admission::EngineDeath> deaths, const std::string& body = kUnary) {
    suspects_.died({.fingerprint = fingerprint(body),
                    .deployment = "mini",
                    .deployment_uid = "",
                    .path = "/p",
                    .deaths = std::move(deaths),
                    .until = {}},
                   clock_.wall_now());
  }
};

}  // namespace penstock::proxy
