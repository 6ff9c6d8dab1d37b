// A request on its way through its deployment's router program: the question, the engine calls that
// the program makes of it, and what they have prepared. Lives as long as the request is with the
// deployment; what nobody uses of it is given back as it goes. The request's I/O thread only.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "proxy/engine_calls.h"
#include "proxy/program_link.h"
#include "proxy/routing_question.h"
#include "runtime/timer_wheel.h"
#include "runtime/wake_up.h"
#include "upstream/call_request.h"

namespace penstock::proxy {

class ProgramRoute {
 public:
  // What is told of the request besides what the errand has.
  struct About {
    v1::RouteAsk ask;
    std::chrono::milliseconds within{0};  // until the request is worthless; 0: never
  };

  ProgramRoute(EngineErrand errand, std::shared_ptr<ProgramLink> link, About about,
               std::shared_ptr<runtime::WakeUp> waker);
  ProgramRoute(const ProgramRoute&) = delete;
  ProgramRoute& operator=(const ProgramRoute&) = delete;
  ~ProgramRoute();

  // Takes up what has come, and passes on what is there. False: there is an answer.
  bool advance();
  // The replica that the program named; empty: none. Once there is an answer.
  std::string replica() const;
  // What came of it; `why`: for a person. What nobody uses ends here.
  void settle(admission::ProgramOutcome outcome, std::string_view why);
  // The answer that there is, as far as it can be told without the place that it needs.
  admission::ProgramOutcome outcome() const;
  const std::string& why() const { return question_.detail(); }

  // What was prepared there, once: another attempt computes all of it.
  const upstream::KvHint* take_kv(std::string_view replica_id);
  // Its replica has begun: what was prepared there is used up.
  void was_scheduled() {
    if (!seq_id_.empty()) engines_.forget(std::exchange(seq_id_, {}));
  }

  // "decided", "slow"; empty: it is not settled yet.
  std::string_view decision() const;
  const std::vector<LegRecord>& legs() const { return engines_.told(); }
  const LegDeath* death() const { return engines_.death(); }

 private:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        runtime::Executor>;

  void look_for_nonsense();
  void look_at_time(base::SteadyTime now);
  void wake_at(base::SteadyTime due, base::SteadyTime now);
  void let_go_of_lease();

  const ThreadParts& parts_;
  const std::string uid_;
  const std::string deployment_;
  const std::shared_ptr<ProgramLink> link_;
  const std::shared_ptr<runtime::WakeUp> waker_;
  const base::SteadyTime asked_;
  const std::optional<base::SteadyTime> until_;
  RoutingQuestion question_;
  EngineCalls engines_;
  Timer own_time_;                    // the program's
  base::SteadyTime woken_at_{};       // that it is set to
  runtime::TimerWheel::Timer watch_;  // while it is open
  std::optional<admission::ProgramOutcome> settled_;
  std::string seq_id_;  // of the lease that the request goes by; empty: none
  std::string lease_;   // as its replica knows it
  upstream::KvHint kv_;
  std::string kv_at_;  // replica; empty: nothing was prepared, or it was taken
};

}  // namespace penstock::proxy
