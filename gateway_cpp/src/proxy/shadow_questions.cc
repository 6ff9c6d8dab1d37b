#include "proxy/shadow_questions.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <string>
#include <utility>
#include <vector>

#include "openai/endpoints.h"

namespace penstock::proxy {

using admission::ShadowOutcome;

namespace {

v1::ShadowReply reply_to(const std::string& id) {
  v1::ShadowReply reply;
  reply.set_id(id);
  return reply;
}

v1::ShadowReply refusal_of(const std::string& id, ShadowOutcome why) {
  auto reply = reply_to(id);
  reply.set_outcome(std::string(name(why)));
  return reply;
}

}  // namespace

// One that is under way: counted as its rule's for as long as it lives.
class ShadowQuestions::Asked {
 public:
  Asked(const ThreadParts& parts, std::string id, std::shared_ptr<const routing::ShadowRule> rule)
      : parts_(parts),
        id_(std::move(id)),
        rule_(std::move(rule)),
        body_share_(parts.shadow_bytes) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() { parts_.shadow_book.end_question(*rule_); }

  // Why it cannot be asked.
  std::optional<ShadowOutcome> read(const v1::ShadowQuestion& question) {
    endpoint_ = openai::find_endpoint(question.path());
    if (endpoint_ == nullptr) return ShadowOutcome::kNotComparable;
    if (!body_share_.grow_to(question.body().size())) return ShadowOutcome::kBodyBudget;
    auto body = std::make_shared<std::string>(question.body());
    auto request = parts_.parser.parse(*endpoint_, *body, parts_.config.body_elements);
    if (!request || request->form == openai::AnswerForm::kStream) {
      return ShadowOutcome::kNotComparable;
    }
    request_ = *std::move(request);
    body_ = std::move(body);
    return std::nullopt;
  }

  void send_to(routing::Route route) {
    call_.emplace(parts_, ShadowErrand{.rule = rule_,
                                       .route = std::move(route),
                                       .endpoint = endpoint_,
                                       .request = &request_,
                                       .body = body_,
                                       .request_id = rule_->uid + ".asked." + id_,
                                       .cache_salt = rule_->cache_salt + ":asked"});
  }

  runtime::Awaitable<void> run() {
    const auto gone = co_await call_->run();
    if (stopped_) co_return;
    auto reply = gone ? refusal_of(id_, *gone) : reply_to(id_);
    if (!gone) *reply.mutable_answer() = call_->answer();
    call_->leave();
    parts_.shadow_sink.reply(std::move(reply));
  }

  void stop() {
    stopped_ = true;
    call_->stop();
  }

 private:
  const ThreadParts& parts_;
  const std::string id_;
  const std::shared_ptr<const routing::ShadowRule> rule_;
  runtime::BodyShare body_share_;
  const openai::Endpoint* endpoint_ = nullptr;
  openai::Request request_;
  upstream::SharedBody body_;
  std::optional<ShadowCall> call_;
  bool stopped_ = false;
};

ShadowQuestions::ShadowQuestions(const ThreadParts& parts) : parts_(parts) {}

ShadowQuestions::~ShadowQuestions() = default;

void ShadowQuestions::ask(const v1::ShadowQuestion& question) {
  if (stopped_) return;
  auto made = make(question);
  if (const auto* why = std::get_if<ShadowOutcome>(&made)) {
    return parts_.shadow_sink.reply(refusal_of(question.id(), *why));
  }
  start(std::get<std::unique_ptr<Asked>>(std::move(made)));
}

ShadowQuestions::Made ShadowQuestions::make(const v1::ShadowQuestion& question) {
  const auto rule = rule_of(question.rule());
  if (!rule) return ShadowOutcome::kNotComparable;
  auto there = way(*rule, question);
  if (const auto* why = std::get_if<ShadowOutcome>(&there)) return *why;
  if (const auto why = parts_.shadow_book.begin_question(*rule)) return *why;
  auto asked = std::make_unique<Asked>(parts_, question.id(), rule);
  if (const auto why = asked->read(question)) return *why;
  asked->send_to(std::get<routing::Route>(std::move(there)));
  return asked;
}

// Whose words it brings has to be known: a provider may not be let in on them.
std::variant<routing::Route, ShadowOutcome> ShadowQuestions::way(
    const routing::ShadowRule& rule, const v1::ShadowQuestion& question) {
  const std::string& deployment = question.deployment();
  const bool is_named = deployment == rule.judge || deployment == rule.embedder;
  const auto tenant = parts_.tenants.current()->of_id(question.tenant());
  if (deployment.empty() || !is_named || !tenant) return ShadowOutcome::kNotAllowed;
  return shadow_way(*parts_.routes.read(), deployment, {}, {*tenant, !question.confined()},
                    {.endpoint = question.path()});
}

// Null: it has ended, or is paused.
std::shared_ptr<const routing::ShadowRule> ShadowQuestions::rule_of(const std::string& uid) const {
  for (const auto& [name, deployment] : parts_.routes.read()->deployments()) {
    const auto& rules = deployment->shadows;
    const auto found = std::ranges::find(rules, uid, &routing::ShadowRule::uid);
    if (found != rules.end()) return {deployment, &*found};
  }
  return nullptr;
}

void ShadowQuestions::start(std::unique_ptr<Asked> made) {
  Asked* const asked = made.get();
  asked_.emplace(asked, std::move(made));
  boost::asio::co_spawn(parts_.io, asked->run(),
                        [this, asked](const std::exception_ptr& broken) { end(asked, broken); });
}

void ShadowQuestions::end(const Asked* asked, const std::exception_ptr& broken) {
  try {
    asked_.erase(asked);
    if (broken) std::rethrow_exception(broken);
  } catch (const std::exception& error) {
    parts_.log.error("a shadow's question ended by an exception", {{"error", error.what()}});
  }
}

// Questions end while they are told.
void ShadowQuestions::stop() {
  stopped_ = true;
  std::vector<Asked*> all;
  for (const auto& [key, asked] : asked_) all.push_back(asked.get());
  for (Asked* asked : all) asked->stop();
}

}  // namespace penstock::proxy
