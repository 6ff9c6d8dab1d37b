// One request from its body to its end, in seven phases: parse, resolve, admit, select, open,
// stream, settle. One RequestFlow for each I/O thread, used by that thread only; it keeps no state
// of a request between calls.
#pragma once

#include <boost/intrusive/list.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "admission/decision.h"
#include "admission/ladder.h"
#include "admission/suspects.h"
#include "admission/tenants.h"
#include "admission/usage_book.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/trace_context.h"
#include "dispatch/dispatchers.h"
#include "openai/request.h"
#include "proxy/delivery.h"
#include "proxy/destination.h"
#include "proxy/failover.h"
#include "proxy/reply.h"
#include "routing/elsewhere.h"
#include "routing/route_table.h"
#include "runtime/body_budget.h"
#include "runtime/gateway_state.h"
#include "runtime/side_threads.h"
#include "runtime/timer_wheel.h"
#include "upstream/upstream.h"

namespace penstock::proxy {

class ShadowCopies;

// A request as it was read off the wire.
struct Ask {
  std::string request_id;         // ours
  std::string client_request_id;  // the caller's own; empty: none
  std::string traceparent;        // as the client wrote it, whatever that is; empty: none
  std::string_view client;        // its address, which lives longer; empty: not to be told
  const openai::Endpoint* endpoint = nullptr;  // that it came to: static, never null
  std::string body;
  runtime::BodyShare share;   // what the body holds of the budget; given back with it
  base::SteadyTime received;  // when the last byte of it had been read
  admission::Caller caller;
  std::optional<base::Priority> priority;  // that it names
  std::string session;                     // x-penstock-session; empty: none
  bool wants_metadata = false;             // x-penstock-metadata: include
  bool may_degrade = true;                 // not x-penstock-degrade: never
};

class RequestFlow {
 public:
  // Everything that a request meets on its way. All outlive the flow.
  struct Parts {
    const base::Clock& clock;
    base::Log& log;
    const base::GatewayConfig& config;
    base::MetricsShard& metrics;
    runtime::GatewayState& state;
    admission::Suspects& suspects;
    runtime::TimerWheel& timers;
    openai::RequestParser& parser;
    routing::RouteReader& routes;
    dispatch::DispatchReader& dispatchers;
    admission::UsageBook& usage;
    upstream::Upstream& upstream;
    runtime::SideThreads& aside;
    runtime::BodyBudget& answers;
    runtime::Executor io;  // of the flow's thread
    ShadowCopies& shadows;
  };

  explicit RequestFlow(const Parts& parts) : parts_(parts) {}
  RequestFlow(const RequestFlow&) = delete;
  RequestFlow& operator=(const RequestFlow&) = delete;

  // Answers the request through `reply`, whatever happens, unless the client leaves.
  Awaitable<void> run(Ask ask, Reply& reply);

  // What every answer of an endpoint says, for one that is refused before its request is read.
  void introduce(AnswerHead& head, std::string_view traceparent, base::SteadyTime received);

  // Requests that wait for a replica's first word are looked at once more when there are new
  // suspects: they may be the same. About once each tick of the timers; of many, some in each.
  void look_for_suspects();
  // Ends the requests of keys that were revoked with what they have under way. Likewise.
  void look_for_ended_keys();

 private:
  struct Exchange;
  struct Descent;
  using Failed = std::optional<base::Error>;

  // A request that is with a replica, or waits for one, and has no answer yet.
  struct Opening : boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    runtime::Signal* news = nullptr;
    size_t bytes = 0;  // to be hashed on this thread
    bool look_again = false;
  };
  using Openings = boost::intrusive::list<Opening, boost::intrusive::constant_time_size<false>>;
  class Listed;

  // A request that came with a key, from its beginning to its end.
  struct Keyed : boost::intrusive::list_base_hook<
                     boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    runtime::Signal* news = nullptr;
    std::string_view id;  // of the key
    bool ended = false;   // it was revoked, and this is to end with it
  };
  using KeyedList = boost::intrusive::list<Keyed, boost::intrusive::constant_time_size<false>>;

  // The phases up to the first news of a replica: request_flow.cc
  void note_key(Exchange& x);
  Failed broken_by(const Exchange& x, const std::exception& error);
  Failed parse(Exchange& x);
  Awaitable<Failed> open(Exchange& x);
  Awaitable<Failed> first_news(Exchange& x);
  void send(Exchange& x);
  static void note_opening(Exchange& x, base::SteadyTime now);
  static void note_waited(Exchange& x, base::SteadyTime now);
  static void note_tokens(Exchange& x, const upstream::Usage& seen);
  uint32_t adapter_wait_ms(const Exchange& x);
  upstream::CallRequest call_request(const Exchange& x);
  void close_attempt(Exchange& x);

  // From one deployment to another: destination.cc
  struct Elsewhere {
    routing::Route route;
    std::shared_ptr<dispatch::Dispatcher> dispatcher;  // never null
  };
  Failed resolve(Exchange& x);
  Failed resolve_again(Exchange& x);
  void enter(Exchange& x, Way way, Elsewhere to);
  static void leave(Exchange& x, const base::Error& why);
  static bool was_left(const Exchange& x, const std::string& deployment);
  static void take(Exchange& x, routing::Route route);
  static const routing::Route& named(const Exchange& x);
  std::optional<Elsewhere> canary_of(const Exchange& x, const routing::Route& named);
  std::variant<Elsewhere, routing::PassedOver> elsewhere(const Exchange& x,
                                                         const routing::Route& named,
                                                         const std::string& deployment, Way way,
                                                         bool no_engine);
  static bool may_be_sent(const Exchange& x, const routing::Route& named,
                          const routing::Route& there, Way way);
  Awaitable<Failed> move_on(Exchange& x, base::Error no);
  bool was_made_anew(const Exchange& x, const base::Error& no);
  static bool may_return(const Exchange& x, const base::Error& no);
  Failed enter_asked(Exchange& x);
  Awaitable<Failed> admit_newcomer(Exchange& x);

  // Whether it may run, and its place: admit.cc
  Failed begin_admission(Exchange& x);
  Failed admit_at_door(Exchange& x);
  Failed admit_by_tenant(Exchange& x);
  static admission::DayAsk day_ask(const Exchange& x);
  Failed admit_to_deployment(Exchange& x);
  Failed refused(Exchange& x, const admission::Refusal& refusal);
  void describe(Exchange& x);
  void appraise(Exchange& x);
  static std::string_view session_name(const Exchange& x);
  static std::string_view sticky_name(const Exchange& x);
  static bool was_given_place(const Exchange& x);
  Awaitable<Failed> select(Exchange& x);
  Awaitable<Failed> wait_for_turn(Exchange& x);
  static Failed take_place(Exchange& x);
  Failed queue_deadline_error(Exchange& x);
  Failed no_replica_left(Exchange& x);

  // Down the ladder of a deployment that cannot answer: degrade.cc
  bool begin_descent(Exchange& x, const base::Error& no);
  void note_refusal(Exchange& x, const base::Error& no);
  const routing::Rung* next_rung(Exchange& x);
  Awaitable<void> judge(Exchange& x);
  bool is_better_off_elsewhere(Exchange& x);
  static bool has_ladder(const Exchange& x);
  bool has_rung(Exchange& x, admission::DegradeReason reason);
  static bool has_budget(const Exchange& x, const Elsewhere& there);
  bool is_passed_over(Exchange& x, const std::string& deployment);
  bool climb_down(Exchange& x, const base::Error& no);
  Failed enter_rung(Exchange& x);
  base::Error step_back(Exchange& x);
  static void note_answered_besides(const Exchange& x, const std::string& deployment);
  static void note_degraded(Exchange& x);
  static bool may_degrade(const Exchange& x);
  static bool trims(const Exchange& x);
  std::chrono::milliseconds within_deadline(const Exchange& x, std::chrono::milliseconds limit);

  // What is kept of a request that is repeated for our own sake: sampling.cc
  void sample(Exchange& x);

  // What suspects and large bodies take besides: aside.cc
  Awaitable<Failed> parse_aside(Exchange& x);
  Awaitable<void> hash_aside(Exchange& x);
  Awaitable<void> know_fingerprint(Exchange& x);
  Awaitable<Failed> admit_suspect(Exchange& x);
  Awaitable<Failed> select_for_suspect(Exchange& x);
  Failed place_suspect(Exchange& x);
  void keep_if_alone(Exchange& x);
  bool board(Exchange& x, const routing::ReplicaId& replica);
  Awaitable<Failed> wait_for_place(Exchange& x);
  std::chrono::milliseconds place_in(const Exchange& x) const;
  Awaitable<Failed> reconsider(Exchange& x);
  Awaitable<Failed> recall(Exchange& x);
  Awaitable<Failed> look_at_waiting(Exchange& x);

  // The answer's way to the client: answer.cc, streamed_answer.cc, unary_answer.cc
  enum class Delivered : uint8_t {
    kYes,
    kNothing,  // nor does the client know of it: another replica may be tried
    kBroken,   // likewise, but none may
  };
  class Shortcut;
  Awaitable<Delivered> deliver(Exchange& x);
  Awaitable<Delivered> streamed_answer(Exchange& x);
  Awaitable<void> stream(Exchange& x);
  Awaitable<Delivered> unary(Exchange& x);
  Awaitable<Failed> collect(Exchange& x, HeldAnswer& answer);
  Awaitable<Failed> make_room(Exchange& x, HeldAnswer& answer);
  static bool take_all(Exchange& x, HeldAnswer& answer);
  AnswerHead begin_whole(Exchange& x);
  Awaitable<void> fail(Exchange& x, const base::Error& error);
  Written write_news(Exchange& x);
  bool write_along(Exchange& x, const upstream::ChunkView& chunk);
  static std::string backend_version(const Exchange& x);
  void note_passed_on(Exchange& x);
  void note_with_client(Exchange& x);
  Piece take_news(Exchange& x);
  Piece last_piece(Exchange& x);
  void hold_end(Exchange& x);
  void add_metadata(Exchange& x);
  std::string broken(const Exchange& x, const base::Error& error) const;
  void note_written(Exchange& x, uint64_t bytes);
  void note_silence(Exchange& x);
  void note_success(Exchange& x);
  void clear(Exchange& x);
  AnswerHead head_of(const Exchange& x, unsigned status, std::string_view content_type) const;
  void begin_stream(Exchange& x, std::string_view content_type);
  void tell_late(Exchange& x);
  bool beat(Exchange& x);
  bool is_silent(Exchange& x);

  // What failures mean for the replica, the request and the client: verdicts.cc
  Awaitable<Next> note_failure(Exchange& x);
  void blame(Exchange& x, routing::Failure failure, std::string_view error);
  void suspect(Exchange& x);
  base::Error failure_error(const Exchange& x);
  Failed fault_of_end(const Exchange& x);
  base::Error deadline_error(Exchange& x);
  std::chrono::milliseconds back_in(const Exchange& x);

  const Parts parts_;
  base::TraceParents traces_;
  Openings openings_;
  Openings to_look_at_;    // of them, once more, since there are new suspects
  uint64_t findings_ = 0;  // of the suspects, that were heard of
  KeyedList keyed_;
  std::shared_ptr<const routing::Routes> looked_at_;  // for keys that were ended
};

// Sets it to fire after so long; 0: never.
void arm_unless_none(runtime::TimerWheel::Timer& timer, std::chrono::milliseconds after);

// What a request is told whose deployment has left the routes.
base::Error gone_from_routes(const std::string& deployment);

// What an answer that was stopped ends with.
base::Error stop_error(Stop stop);

}  // namespace penstock::proxy
