#include "proxy/engine_calls.h"

#include <algorithm>
#include <utility>

#include "proxy/engine_requests.h"
#include "proxy/program_links.h"

namespace penstock::proxy {

const dispatch::Engine* EngineCalls::engine(std::string_view replica_id) const {
  const auto found = std::ranges::find_if(errand_.engines, [&](const dispatch::Engine& one) {
    return one.replica->id().value == replica_id;
  });
  return found == errand_.engines.end() ? nullptr : &*found;
}

const Lease* EngineCalls::lease(const std::string& seq_id) const {
  const auto found = leases_.find(seq_id);
  return found == leases_.end() ? nullptr : &found->second;
}

std::string EngineCalls::name_of_lease(std::string_view seq_id) const {
  return std::string(errand_.request.request_id).append("/").append(seq_id);
}

upstream::KvHint EngineCalls::left_at(std::string_view replica_id) const {
  const auto found = left_.find(replica_id);
  if (found == left_.end()) return {};
  return {.seq_id = found->second.lease, .moved_tokens = found->second.moved_tokens};
}

void EngineCalls::begin(const v1::EngineCall& wanted) {
  auto leg = std::make_unique<EngineLeg>();
  leg->wanted = wanted;
  leg->steps = steps_of(wanted.verb());
  leg->begun = errand_.parts.clock.steady_now();
  leg->due = leg->begun + errand_.program.transfer_deadline;
  leg->reply.set_ask_id(wanted.ask_id());
  leg->reply.set_call_id(wanted.call_id());
  std::string no = refuses(*leg);
  if (!no.empty()) {
    fail(*leg, std::move(no), {});
  } else if (traits_of(leg->step()).needs_prompt && !prompt_) {
    start_prompt(*leg);
  }
  legs_.push_back(std::move(leg));
}

// The engine of the next step.
const EngineLeg::Replica& EngineCalls::seat_of(const EngineLeg& leg) {
  const bool migrates = leg.wanted.verb() == v1::ENGINE_VERB_MIGRATE;
  return migrates && leg.step() != v1::ENGINE_VERB_REMOTE_SEND ? leg.to : leg.at;
}

std::string EngineCalls::refuses(EngineLeg& leg) {
  const v1::EngineCall& wanted = leg.wanted;
  const std::string_view verb = traits_of(wanted.verb()).name;
  const auto& uses = errand_.program.uses;
  if (verb.empty() || std::ranges::find(uses, verb) == uses.end()) return "not_in_uses";
  std::string no;
  switch (wanted.verb()) {
    case v1::ENGINE_VERB_COMMIT:
    case v1::ENGINE_VERB_RELEASE:
      return find_lease(leg);
    case v1::ENGINE_VERB_MIGRATE:
      no = find_pair(leg);
      break;
    default:
      no = refuses_seat(leg, engine(wanted.replica_id()));
      if (no.empty() && wanted.verb() == v1::ENGINE_VERB_REMOTE_SEND) no = find_lease(leg);
      break;
  }
  if (no.empty() && leg.to == leg.at) return "bad_request";
  return no.empty() && traits_of(wanted.verb()).needs_place ? take_places(leg) : no;
}

std::string EngineCalls::refuses_seat(EngineLeg& leg, const dispatch::Engine* engine) const {
  if (engine == nullptr) return "bad_request";
  if (!engine->moves_kv) return "unsupported";
  leg.at = engine->replica;
  const bool prepares = leg.wanted.verb() == v1::ENGINE_VERB_PREP_RECV;
  const std::string& seq_id = leg.wanted.seq_id();
  if (prepares && (seq_id.empty() || is_preparing(seq_id))) return "bad_request";
  const Lease* known = prepares ? lease(seq_id) : nullptr;
  return known != nullptr && known->at != leg.at ? "bad_request" : std::string();
}

// A lease of that name is on its way already.
bool EngineCalls::is_preparing(const std::string& seq_id) const {
  return std::ranges::any_of(legs_, [&](const auto& leg) {
    const auto verb = leg->wanted.verb();
    return leg->wanted.seq_id() == seq_id &&
           (verb == v1::ENGINE_VERB_PREP_RECV || verb == v1::ENGINE_VERB_MIGRATE);
  });
}

// Its replica may have given it, though nobody hears of that; and be it that the program has
// released it meanwhile.
void EngineCalls::keep_lease(const EngineLeg& leg) {
  if (!leg.call || leg.step() != v1::ENGINE_VERB_PREP_RECV) return;
  leases_.try_emplace(leg.wanted.seq_id(), Lease{.at = seat_of(leg), .address = {}});
}

// Of a send, the lease is where it goes; of all else, where it is done.
std::string EngineCalls::find_lease(EngineLeg& leg) const {
  const Lease* found = lease(leg.wanted.seq_id());
  const bool sends = leg.wanted.verb() == v1::ENGINE_VERB_REMOTE_SEND;
  if (found == nullptr || (sends && !found->is_prepared)) return "no_lease";
  (sends ? leg.to : leg.at) = found->at;
  return {};
}

std::string EngineCalls::find_pair(EngineLeg& leg) const {
  if (leg.wanted.seq_id().empty()) {
    leg.wanted.set_seq_id("migrate-" + std::to_string(leg.wanted.call_id()));
  }
  const dispatch::Engine* to = engine(leg.wanted.to_replica_id());
  const std::string& seq_id = leg.wanted.seq_id();
  if (to == nullptr || lease(seq_id) != nullptr || is_preparing(seq_id)) return "bad_request";
  if (!to->moves_kv) return "unsupported";
  leg.to = to->replica;
  return refuses_seat(leg, engine(leg.wanted.replica_id()));
}

std::string EngineCalls::take_places(EngineLeg& leg) const {
  std::string no = take_place(leg, *leg.at);
  if (no.empty() && leg.wanted.verb() == v1::ENGINE_VERB_MIGRATE) no = take_place(leg, *leg.to);
  if (!no.empty()) leg.places.clear();
  return no;
}

// Where the request has its place, that is enough.
std::string EngineCalls::take_place(EngineLeg& leg, const routing::Replica& at) const {
  if (at.id() == errand_.own) return {};
  auto place = errand_.dispatcher->place_leg(at.id());
  if (!place) return "no_place";
  leg.places.push_back(std::move(place));
  return {};
}

// Where the first engine is that needs it.
void EngineCalls::start_prompt(const EngineLeg& first) {
  if (tokenizes_) return;
  auto room = errand_.room();
  prompt_fault_ = room ? "" : "no_room";
  if (!room) return;
  tokenizes_ = true;
  auto leg = std::make_unique<EngineLeg>();
  leg->is_ours = true;
  leg->wanted.set_verb(v1::ENGINE_VERB_TOKENIZE);
  leg->steps = steps_of(v1::ENGINE_VERB_TOKENIZE);
  leg->at = first.at;
  leg->begun = first.begun;
  leg->due = first.due;
  open(*leg, leg->at, tokenize_request(errand_.request, errand_.body()), std::move(*room));
  legs_.push_back(std::move(leg));
}

void EngineCalls::advance() {
  const auto now = errand_.parts.clock.steady_now();
  // Legs that begin meanwhile stand behind the others.
  for (size_t i = 0; i < legs_.size(); ++i) look_at(*legs_[i], now);
  reap();
}

void EngineCalls::reap() {
  for (const auto& leg : legs_) {
    if (leg->state != EngineLeg::State::kOver || leg->is_ours) continue;
    replies_.push_back(std::move(leg->reply));
  }
  std::erase_if(legs_, [](const auto& leg) { return leg->state == EngineLeg::State::kOver; });
}

void EngineCalls::clear(const std::string& but) {
  for (const auto& leg : legs_) keep_lease(*leg);
  legs_.clear();
  prompt_.reset();
  std::vector<std::string> left;
  for (const auto& [seq_id, lease] : leases_) {
    if (seq_id != but) left.push_back(seq_id);
  }
  for (const std::string& seq_id : left) release(seq_id);
}

// Its replica is told, and nobody waits for what it says to that.
void EngineCalls::release(const std::string& seq_id) {
  const auto found = leases_.find(seq_id);
  if (found == leases_.end()) return;
  const routing::Replica& at = *found->second.at;
  v1::ReleaseRequest release;
  release.set_seq_id(left_[at.id().value].lease = name_of_lease(seq_id));
  const std::string body = release.SerializeAsString();
  errand_.parts.programs.tell({at.id().value, at.address(), at.own_token()},
                              {.request_id = errand_.request.request_id,
                               .traceparent = errand_.request.traceparent,
                               .method = "POST",
                               .path = traits_of(v1::ENGINE_VERB_RELEASE).path,
                               .body = body,
                               .tenant = errand_.request.tenant});
  leases_.erase(found);
}

}  // namespace penstock::proxy
