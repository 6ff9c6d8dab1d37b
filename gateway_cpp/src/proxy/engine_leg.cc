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

template <class Message>
bool parse(const EngineLeg& leg, Message& message) {
  return message.ParseFromString(leg.answer);
}

// What would overflow a sum is no number of tokens.
uint32_t bounded_tokens(uint32_t told) { return std::min(told, upstream::kMostTokens); }

}  // namespace

std::string_view name_of(v1::EngineVerb verb) {
  switch (verb) {
    case v1::ENGINE_VERB_TOKENIZE:
      return "tokenize";
    case v1::ENGINE_VERB_LOOKUP:
      return "lookup";
    case v1::ENGINE_VERB_PREP_RECV:
      return "prep_recv";
    case v1::ENGINE_VERB_REMOTE_SEND:
      return "remote_send";
    case v1::ENGINE_VERB_COMMIT:
      return "commit";
    case v1::ENGINE_VERB_RELEASE:
      return "release";
    case v1::ENGINE_VERB_MIGRATE:
      return "migrate";
    default:
      return {};
  }
}

std::string_view path_of(v1::EngineVerb verb) {
  switch (verb) {
    case v1::ENGINE_VERB_TOKENIZE:
      return "/penstock.v1.MicroServing/Tokenize";
    case v1::ENGINE_VERB_LOOKUP:
      return "/penstock.v1.MicroServing/Lookup";
    case v1::ENGINE_VERB_PREP_RECV:
      return "/penstock.v1.MicroServing/PrepRecv";
    case v1::ENGINE_VERB_REMOTE_SEND:
      return "/penstock.v1.MicroServing/RemoteSend";
    case v1::ENGINE_VERB_COMMIT:
      return "/penstock.v1.MicroServing/Commit";
    default:
      return "/penstock.v1.MicroServing/Release";
  }
}

std::vector<v1::EngineVerb> steps_of(v1::EngineVerb verb) {
  if (verb != v1::ENGINE_VERB_MIGRATE) return {verb};
  return {v1::ENGINE_VERB_PREP_RECV, v1::ENGINE_VERB_REMOTE_SEND, v1::ENGINE_VERB_COMMIT};
}

bool needs_prompt(v1::EngineVerb step) {
  return step == v1::ENGINE_VERB_TOKENIZE || step == v1::ENGINE_VERB_LOOKUP ||
         step == v1::ENGINE_VERB_PREP_RECV || step == v1::ENGINE_VERB_REMOTE_SEND;
}

bool needs_place(v1::EngineVerb verb) {
  return verb == v1::ENGINE_VERB_PREP_RECV || verb == v1::ENGINE_VERB_REMOTE_SEND ||
         verb == v1::ENGINE_VERB_MIGRATE;
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
