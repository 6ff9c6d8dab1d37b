// One request from its body to its end, in seven phases: parse, resolve, admit, select, open,
// stream, settle. One RequestFlow for each I/O thread, used by that thread only; it keeps no state
// of a request between calls.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "admission/decision.h"
#include "admission/ladder.h"
#include "base/error.h"
#include "base/trace_context.h"
#include "proxy/destination.h"
#include "proxy/failover.h"
#include "proxy/lookout.h"
#include "proxy/parts.h"
#include "proxy/reply.h"
#include "proxy/resume_rule.h"
#include "routing/elsewhere.h"
#include "routing/route_table.h"
#include "runtime/timer_wheel.h"
#include "upstream/call.h"

namespace penstock::v1 {
class RouteAsk;
}  // namespace penstock::v1

namespace penstock::proxy {

struct Exchange;
class HeldAnswer;
class ProgramRoute;
class ShadowCopies;
struct EngineErrand;

// A request whose head alone was read. A value; views hold as long as the call.
struct Unread {
  std::string_view request_id;
  std::string_view client_request_id;
  std::string_view traceparent;
  std::string_view client;  // its address; empty: not to be told
  const openai::Endpoint* endpoint;
  base::SteadyTime received;
};

class RequestFlow {
 public:
  RequestFlow(const ThreadParts& parts, ShadowCopies& shadows) : parts_(parts), shadows_(shadows) {}
  RequestFlow(const RequestFlow&) = delete;
  RequestFlow& operator=(const RequestFlow&) = delete;

  // Answers the request through `reply`, whatever happens, unless the client leaves. Both stay the
  // caller's, who has room for them anyway: each stream would hold a second one of its own.
  Awaitable<void> run(Ask& ask, Reply& reply);

  // What every answer of an endpoint says, for one that is refused before its request is read. Who
  // has no key that is good finds it explained, in the share of those without a tenant; no line is
  // logged: strangers may fill no disk.
  void introduce(AnswerHead& head, const Unread& request, const base::Error& why);

  // Requests that wait for a replica's first word are looked at once more when there are new
  // suspects: they may be the same. About once each tick of the timers; of many, some in each.
  void look_for_suspects() { openings_.tell(parts_.suspects); }
  // Ends the requests of keys that were revoked with what they have under way. Likewise.
  void look_for_ended_keys() { keyed_.tell(parts_.routes.read()); }
  // Tells streams that their replica is stuck, or is to hand them over. Likewise.
  void look_for_replicas() { running_.tell(*parts_.dispatchers.read()); }

 private:
  // The phases up to the first news of a replica: request_flow.cc
  base::MaybeError broken_by(const Exchange& x, const std::exception& error);
  base::MaybeError parse(Exchange& x);
  Awaitable<base::MaybeError> open(Exchange& x);
  Awaitable<base::MaybeError> first_news(Exchange& x);
  void send(Exchange& x);
  static std::string_view why_sent(const Exchange& x);
  static void note_attempt_over(Exchange& x, const base::Error& why);
  static void close(Exchange& x, base::Error why);
  static void fail_attempt(Exchange& x, base::Error why);
  static void note_cut_off(Exchange& x);
  static void note_opening(Exchange& x, base::SteadyTime now);
  static void note_waited(Exchange& x, base::SteadyTime now);
  uint32_t adapter_wait_ms(const Exchange& x);
  upstream::CallRequest call_request(const Exchange& x);
  base::TraceContext trace_of(Ask& ask);
  static upstream::Held held_for(Exchange& x);
  static upstream::Resume resume_of(const Exchange& x);

  // From one deployment to another: destination.cc
  struct Elsewhere {
    routing::Route route;
    std::shared_ptr<dispatch::Dispatcher> dispatcher;  // never null
  };
  base::MaybeError resolve(Exchange& x);
  base::MaybeError resolve_again(Exchange& x);
  void enter(Exchange& x, Way way, Elsewhere to);
  static void leave(Exchange& x, const base::Error& why);
  static void take(Exchange& x, routing::Route route);
  static void note_stay(Exchange& x, Way way, const routing::Route& at);
  std::variant<Elsewhere, routing::PassedOver> elsewhere(Exchange& x, const routing::Route& named,
                                                         const std::string& deployment, Way way,
                                                         bool no_engine);
  static bool may_be_sent(const Exchange& x, const routing::Route& named,
                          const routing::Route& there, Way way);
  Awaitable<base::MaybeError> move_on(Exchange& x, base::Error no);
  bool was_made_anew(const Exchange& x, const base::Error& no);
  static bool may_return(const Exchange& x, const base::Error& no);
  base::MaybeError enter_asked(Exchange& x);
  Awaitable<base::MaybeError> admit_newcomer(Exchange& x);

  // Whose share of a canary it has, and in which arm it is: canary_share.cc
  std::optional<routing::Route> candidate_version(const Exchange& x, routing::Route& named);
  std::optional<Elsewhere> canary_of(Exchange& x, const Elsewhere& named,
                                     std::optional<routing::Route> version);
  std::optional<Elsewhere> deployment_of(Exchange& x, const routing::Route& named,
                                         const std::string& candidate);
  static std::optional<Elsewhere> revision_of(Exchange& x, const Elsewhere& named,
                                              const routing::CanaryRule& rule);
  static std::string arm_of(const Exchange& x);
  static void note_revision(Exchange& x);

  // Whether it may run, and its place: admit.cc
  base::MaybeError admit_to_gateway(Exchange& x);
  base::MaybeError admit_at_door(Exchange& x);
  base::MaybeError admit_by_tenant(Exchange& x);
  base::MaybeError admit_to_deployment(Exchange& x);
  base::MaybeError refused(Exchange& x, const admission::Refusal& refusal);
  void describe(Exchange& x);
  void appraise(Exchange& x);
  Awaitable<base::MaybeError> select(Exchange& x);
  Awaitable<base::MaybeError> wait_for_turn(Exchange& x);
  static base::MaybeError take_place(Exchange& x);
  base::MaybeError queue_deadline_error(Exchange& x);
  base::MaybeError no_replica_left(Exchange& x);

  // What a router program says of it: ask_program.cc
  static bool asks_program(const Exchange& x);
  static v1::RouteAsk route_ask(const Exchange& x, const EngineErrand& errand,
                                std::chrono::milliseconds within);
  std::unique_ptr<ProgramRoute> question_for(Exchange& x);
  Awaitable<base::MaybeError> ask_program(Exchange& x);
  static void follow_program(Exchange& x);
  static void settle_program(Exchange& x, admission::ProgramOutcome outcome,
                             const std::string& why);
  Awaitable<base::MaybeError> die_of_leg(Exchange& x);

  // Down the ladder of a deployment that cannot answer: degrade.cc
  bool begin_descent(Exchange& x, const base::Error& no);
  void note_refusal(Exchange& x, const base::Error& no);
  const routing::Rung* next_rung(Exchange& x);
  Awaitable<void> mark_suspect(Exchange& x);
  bool is_better_off_elsewhere(Exchange& x);
  bool has_rung(Exchange& x, admission::DegradeReason reason);
  static bool has_budget(const Exchange& x, const Elsewhere& there);
  bool is_passed_over(Exchange& x, const std::string& deployment);
  bool climb_down(Exchange& x, const base::Error& no);
  base::MaybeError enter_rung(Exchange& x);
  base::Error step_back(Exchange& x);
  static void note_answered_besides(const Exchange& x, const std::string& deployment);
  static void note_degraded(Exchange& x);
  std::chrono::milliseconds within_deadline(const Exchange& x, std::chrono::milliseconds limit);

  // What is kept of a request that is repeated for our own sake: sampling.cc
  void sample(Exchange& x);

  // What suspects and large bodies take besides: aside.cc
  Awaitable<base::MaybeError> parse_aside(Exchange& x);
  Awaitable<void> hash_aside(Exchange& x);
  Awaitable<void> know_fingerprint(Exchange& x);
  Awaitable<base::MaybeError> admit_suspect(Exchange& x);
  Awaitable<base::MaybeError> select_for_suspect(Exchange& x);
  base::MaybeError place_suspect(Exchange& x);
  bool exclude_suspects(const Exchange& x, std::vector<routing::ReplicaId>& excluded) const;
  void keep_if_alone(Exchange& x);
  bool board(Exchange& x, const routing::ReplicaId& replica);
  bool is_quarantined(const Exchange& x);
  static bool is_to_be_judged(const Exchange& x, base::ResumeReason reason);
  Awaitable<base::MaybeError> judge(Exchange& x);
  Awaitable<base::MaybeError> wait_for_place(Exchange& x);
  std::chrono::milliseconds place_in(const Exchange& x) const;
  Awaitable<base::MaybeError> reconsider(Exchange& x);
  Awaitable<base::MaybeError> recall(Exchange& x);
  Awaitable<base::MaybeError> look_at_waiting(Exchange& x);

  // The answer's way to the client: answer.cc, streamed_answer.cc, unary_answer.cc
  enum class Delivered : uint8_t {
    kYes,
    kNothing,  // nor does the client know of it: another replica may be tried
    kBroken,   // likewise, but none may
  };
  // A piece of a stream, and what became of it.
  struct Written {
    Piece piece;
    Sent sent;
  };
  class Shortcut;
  Awaitable<Delivered> deliver(Exchange& x);
  Awaitable<Delivered> streamed_answer(Exchange& x);
  void keep_delivered(Exchange& x);
  enum class Streamed : uint8_t {
    kOver,
    kBroken,  // another replica may go on with it
  };
  Awaitable<Streamed> stream(Exchange& x);
  Awaitable<Delivered> unary(Exchange& x);
  Awaitable<base::MaybeError> collect(Exchange& x, HeldAnswer& answer);
  Awaitable<base::MaybeError> make_room(Exchange& x, HeldAnswer& answer);
  static bool take_all(Exchange& x, HeldAnswer& answer);
  AnswerHead begin_whole(Exchange& x);
  Awaitable<void> fail(Exchange& x, const base::Error& error);
  Written write_news(Exchange& x);
  bool write_along(Exchange& x, const upstream::ChunkView& chunk);
  void note_passed_on(Exchange& x);
  void note_with_client(Exchange& x);
  Piece take_news(Exchange& x);
  Piece last_piece(Exchange& x);
  std::string broken(const Exchange& x, const base::Error& error) const;
  void note_written(Exchange& x, uint64_t bytes);
  void note_silence(Exchange& x);
  void note_success(Exchange& x);
  void clear(Exchange& x);
  void begin_stream(Exchange& x, std::string_view content_type);
  void tell_late(Exchange& x);
  bool beat(Exchange& x);
  bool is_silent(Exchange& x);

  // How an answer goes on that broke: resumption.cc
  std::optional<routing::Limits> limits_of_resume(const Exchange& x);
  GoesOn would_go_on(Exchange& x, base::ResumeReason reason);
  bool breaks(Exchange& x, base::ResumeReason reason, base::Error cause);
  static void note_broken(Exchange& x);
  bool goes_on_after(Exchange& x, const base::Error& fault);
  Awaitable<base::MaybeError> resume(Exchange& x);
  void leave_broken(Exchange& x);
  static void note_paid(Exchange& x);
  Awaitable<base::MaybeError> wait_to_go_on(Exchange& x);
  static std::vector<routing::ReplicaId> not_to_go_on_at(const Exchange& x);
  void seek_place(Exchange& x, bool looks_again);
  static bool is_another_ready(const Exchange& x);
  static bool is_excluded_in_vain(const Exchange& x);
  base::Error nobody_goes_on(const Exchange& x);
  Awaitable<base::MaybeError> first_of_rest(Exchange& x);
  Awaitable<base::MaybeError> refused_rest(Exchange& x);
  void note_resumed(Exchange& x);
  void note_not_resumed(Exchange& x, const base::Error& told);

  // An answer of which its client has nothing begins once more: begin_again.cc
  Next begins_again(Exchange& x, Next next);
  static bool may_be_answered_elsewhere(const Exchange& x);
  Awaitable<base::MaybeError> wait_to_begin_again(Exchange& x);

  // From a replica that is stuck, or leaves: hand_over.cc
  bool moves(Exchange& x, routing::Word word);
  bool may_move(Exchange& x, routing::Word word);
  bool asks_to_move(Exchange& x, routing::Word word);
  Awaitable<void> note_stuck(Exchange& x);
  static Awaitable<Sent> catch_up(Exchange& x);
  Awaitable<bool> leaves_stuck(Exchange& x);

  // What failures mean for the replica, the request and the client: verdicts.cc
  Awaitable<Next> note_failure(Exchange& x);
  void blame(Exchange& x, routing::Failure failure, std::string_view error);
  void suspect(Exchange& x);
  base::Error failure_error(const Exchange& x);
  base::MaybeError fault_of_end(const Exchange& x);
  base::Error deadline_error(Exchange& x);
  std::chrono::milliseconds back_in(const Exchange& x);

  const ThreadParts parts_;
  ShadowCopies& shadows_;
  base::TraceContexts traces_;
  Openings openings_;
  KeyedRequests keyed_;
  RunningStreams running_;
};

// Sets it to fire after so long; 0: never.
void arm_unless_none(runtime::TimerWheel::Timer& timer, std::chrono::milliseconds after);

// What a request is told whose deployment has left the routes.
base::Error gone_from_routes(const std::string& deployment);

// What an answer that was stopped ends with.
base::Error stop_error(Stop stop);

}  // namespace penstock::proxy
