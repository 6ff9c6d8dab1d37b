#include "proxy/program_route.h"

#include <algorithm>

namespace penstock::proxy {

using admission::ProgramOutcome;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLookEach{100};  // at engines that may be lost, and at deadlines

}  // namespace

ProgramRoute::ProgramRoute(EngineErrand errand, std::shared_ptr<ProgramLink> link, About about,
                           std::shared_ptr<runtime::WakeUp> waker)
    : parts_(errand.parts),
      uid_(errand.uid),
      deployment_(errand.deployment),
      link_(std::move(link)),
      waker_(std::move(waker)),
      asked_(parts_.clock.steady_now()),
      until_(about.within.count() > 0 ? std::optional(asked_ + about.within) : std::nullopt),
      question_(link_->next_id(), asked_, errand.program.deadline),
      engines_(std::move(errand)),
      own_time_(parts_.io),
      watch_(parts_.timers, engines_.news()) {
  about.ask.set_ask_id(question_.id());
  link_->ask(question_, engines_.news(), std::move(about.ask));
}

ProgramRoute::~ProgramRoute() {
  if (!settled_) settle(ProgramOutcome::kAbandoned, {});
}

bool ProgramRoute::advance() {
  const auto now = parts_.clock.steady_now();
  while (auto call = question_.next_call()) engines_.begin(*call);
  engines_.advance();
  for (auto& reply : std::exchange(engines_.replies(), {})) link_->reply(std::move(reply));
  question_.engines_work(engines_.any_run(), now);
  look_for_nonsense();
  look_at_time(now);
  return question_.is_open();
}

// A decision that nobody can follow.
void ProgramRoute::look_for_nonsense() {
  if (question_.state() != Asked::kDecided) return;
  const v1::RouteDecision& decided = question_.decision();
  const bool is_known = decided.replica_id().empty() || engines_.engine(decided.replica_id());
  if (!is_known) return question_.fail(ProgramOutcome::kNonsense, "it names an unknown replica");
  if (decided.seq_id().empty()) return;
  const Lease* lease = engines_.lease(decided.seq_id());
  if (lease == nullptr || lease->at->id().value != decided.replica_id()) {
    question_.fail(ProgramOutcome::kNonsense, "it names a lease that is not at its replica");
  }
}

void ProgramRoute::look_at_time(base::SteadyTime now) {
  if (!question_.is_open()) return;
  const auto due = question_.due();
  const bool is_over = (due && now >= *due) || (until_ && now >= *until_);
  if (is_over) return question_.fail(ProgramOutcome::kSlow, "it took too long to decide");
  watch_.arm(kLookEach);
  if (due) wake_at(*due, now);
}

// The wheel's ticks are longer than what a program may take.
void ProgramRoute::wake_at(base::SteadyTime due, base::SteadyTime now) {
  if (due == woken_at_) return;
  woken_at_ = due;
  own_time_.expires_after(due - now);
  own_time_.async_wait([waker = waker_](const boost::system::error_code& ec) {
    if (!ec) waker->post();
  });
}

std::string ProgramRoute::replica() const {
  return question_.state() == Asked::kDecided ? question_.decision().replica_id() : std::string();
}

ProgramOutcome ProgramRoute::outcome() const {
  if (question_.state() == Asked::kFailed) return question_.fault();
  return question_.decision().replica_id().empty() ? ProgramOutcome::kLeft
                                                   : ProgramOutcome::kDecided;
}

std::string_view ProgramRoute::decision() const {
  return settled_ ? name(*settled_) : std::string_view();
}

void ProgramRoute::settle(ProgramOutcome outcome, std::string_view why) {
  settled_ = outcome;
  link_->close(question_);
  own_time_.cancel();
  watch_.disarm();
  const auto now = parts_.clock.steady_now();
  if (parts_.program_book.ended(uid_, outcome, why, now)) {
    parts_.log.warning("a router program failed time and again, and is left alone for a while",
                       {{"deployment", deployment_}, {"failure", name(outcome)}, {"detail", why}});
  }
  parts_.metrics.deployment(deployment_)->program.observe(now - asked_);
  if (outcome == ProgramOutcome::kDecided) seq_id_ = question_.decision().seq_id();
  engines_.clear(seq_id_);
  if (seq_id_.empty()) return;
  lease_ = engines_.name_of_lease(seq_id_);
  kv_at_ = question_.decision().replica_id();
  kv_ = {.seq_id = lease_,
         .begin = question_.decision().begin(),
         .moved_tokens = engines_.left_at(kv_at_).moved_tokens};
}

// Where it goes without a lease of the program's, what was moved there for it was not cached
// before.
const upstream::KvHint* ProgramRoute::take_kv(std::string_view replica_id) {
  if (std::exchange(kv_at_, {}) != replica_id) {
    let_go_of_lease();
    kv_ = engines_.left_at(replica_id);
  }
  return kv_.seq_id.empty() && kv_.moved_tokens == 0 ? nullptr : &kv_;
}

void ProgramRoute::let_go_of_lease() {
  if (!seq_id_.empty()) engines_.release(std::exchange(seq_id_, {}));
}

}  // namespace penstock::proxy
