#include "proxy/engine_leg.h"

#include <algorithm>
#include <array>

#include "runtime/payload.h"
#include "upstream/call_checks.h"

namespace penstock::proxy {
namespace {

constexpr size_t kMostAnswerBytes = 32UL << 20U;  // token ids and hashes of the longest prompt
constexpr std::array kCauses = {"fingerprint", "no_kv_capacity", "no_lease", "unsupported",
                                "transfer",    "bad_request",    "deadline"};

// In the order of v1::EngineVerb.
constexpr std::array<VerbTraits, v1::EngineVerb_ARRAYSIZE> kVerbs = {{
    {},
    {"tokenize", "/penstock.v1.MicroServing/Tokenize", true, false},
    {"lookup", "/penstock.v1.MicroServing/Lookup", true, false},
    {"prep_recv", "/penstock.v1.MicroServing/PrepRecv", true, true},
    {"remote_send", "/penstock.v1.MicroServing/RemoteSend", true, true},
    {"commit", "/penstock.v1.MicroServing/Commit", false, false},
    {"release", "/penstock.v1.MicroServing/Release", false, false},
    {"migrate", {}, false, true},
}};
static_assert(kVerbs[v1::ENGINE_VERB_MIGRATE].name == "migrate");

template <class Message>
bool parse(const EngineLeg& leg, Message& message) {
  return message.ParseFromString(leg.answer);
}

// What would overflow a sum is no number of tokens.
uint32_t bounded_tokens(uint32_t told) { return std::min(told, upstream::kMostTokens); }

}  // namespace

const VerbTraits& traits_of(v1::EngineVerb verb) {
  return kVerbs[v1::EngineVerb_IsValid(verb) ? static_cast<size_t>(verb) : 0];
}

std::vector<v1::EngineVerb> steps_of(v1::EngineVerb verb) {
  if (verb != v1::ENGINE_VERB_MIGRATE) return {verb};
  return {v1::ENGINE_VERB_PREP_RECV, v1::ENGINE_VERB_REMOTE_SEND, v1::ENGINE_VERB_COMMIT};
}

std::string cause_of(const upstream::CallFailure& failure) {
  const std::string& code = failure.error.code();
  const bool is_told = failure.source == upstream::CallFailure::Source::kReplica;
  return is_told && std::ranges::find(kCauses, code) != kCauses.end() ? code : "unavailable";
}

bool take_answer(EngineLeg& leg) {
  if (!leg.call->has_bytes()) return true;
  runtime::Payload payload;
  leg.call->take(payload);
  leg.answer += payload.bytes();
  leg.call->wrote(payload.size());
  return leg.answer.size() <= kMostAnswerBytes;
}

bool read_lookup(EngineLeg& leg) {
  v1::LookupReply told;
  if (!parse(leg, told)) return false;
  leg.reply.set_matched_len(bounded_tokens(told.matched_len()));
  leg.reply.set_block_size(told.block_size());
  return true;
}

bool read_prepared(EngineLeg& leg, Lease& lease) {
  v1::PrepRecvReply told;
  if (!parse(leg, told) || !told.has_kv_addr()) return false;
  leg.reply.set_matched_len(bounded_tokens(told.matched_len()));
  leg.reply.set_end(bounded_tokens(told.end()));
  leg.reply.set_block_size(told.kv_addr().block_size());
  lease.is_prepared = true;
  lease.end = bounded_tokens(told.end());
  lease.address.Swap(told.mutable_kv_addr());
  return true;
}

bool read_sent(EngineLeg& leg) {
  v1::RemoteSendReply told;
  if (!parse(leg, told)) return false;
  leg.reply.set_moved_tokens(bounded_tokens(told.moved_tokens()));
  leg.reply.set_moved_bytes(told.moved_bytes());
  leg.reply.set_transfer_us(told.transfer_us());
  return true;
}

bool read_committed(EngineLeg& leg) {
  v1::CommitReply told;
  if (!parse(leg, told)) return false;
  leg.reply.set_matched_len(bounded_tokens(told.cached_len()));
  return true;
}

}  // namespace penstock::proxy
