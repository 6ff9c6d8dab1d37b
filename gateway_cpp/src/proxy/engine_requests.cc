#include "proxy/engine_requests.h"

#include <utility>

namespace penstock::proxy {
namespace {

uint32_t within(const v1::TokenizeReply& prompt, uint32_t end) {
  return end == 0 || end > prompt.length() ? prompt.length() : end;
}

}  // namespace

v1::TokenizeRequest tokenize_request(const upstream::CallRequest& client, std::string_view body) {
  v1::TokenizeRequest request;
  v1::CallRequest& call = *request.mutable_call();
  const auto text = [](std::string_view view) { return std::string(view); };
  call.set_request_id(text(client.request_id));
  call.set_traceparent(text(client.traceparent));
  call.set_method(text(client.method));
  call.set_path(text(client.path));
  call.set_body(text(body));
  call.set_model(text(client.model));
  call.set_adapter(text(client.adapter));
  call.set_priority(client.priority);
  call.set_tenant_salt(text(client.tenant_salt));
  call.set_max_prompt_tokens(client.max_prompt_tokens);
  call.set_max_completion_tokens(client.max_completion_tokens);
  call.set_adapter_digest(text(client.adapter_digest));
  call.set_trim(client.trim);
  call.set_tenant(text(client.tenant));
  return request;
}

v1::LookupRequest lookup_request(const v1::TokenizeReply& prompt) {
  v1::LookupRequest request;
  *request.mutable_prompt() = prompt.prompt();
  return request;
}

v1::PrepRecvRequest prepare_request(const v1::TokenizeReply& prompt, uint32_t end,
                                    std::string seq_id, std::chrono::milliseconds ttl) {
  v1::PrepRecvRequest request;
  *request.mutable_prompt() = prompt.prompt();
  request.set_end(within(prompt, end));
  request.set_seq_id(std::move(seq_id));
  request.set_ttl_ms(static_cast<uint32_t>(ttl.count()));
  return request;
}

v1::RemoteSendRequest send_request(const v1::TokenizeReply& prompt, const v1::KvAddress& to,
                                   uint32_t begin, uint32_t end, std::string seq_id,
                                   const upstream::CallRequest& client,
                                   std::chrono::milliseconds deadline) {
  v1::RemoteSendRequest request;
  *request.mutable_prompt() = prompt.prompt();
  *request.mutable_kv_addr() = to;
  request.set_begin(begin);
  request.set_end(within(prompt, end));
  request.set_seq_id(std::move(seq_id));
  request.set_request_id(std::string(client.request_id));
  request.set_traceparent(std::string(client.traceparent));
  request.set_priority(client.priority);
  request.set_deadline_ms(static_cast<uint32_t>(deadline.count()));
  request.set_tenant(std::string(client.tenant));
  return request;
}

void fill_tokenized(const v1::TokenizeReply& prompt, bool sees_tokens, std::string_view body,
                    v1::EngineReply& reply) {
  reply.set_length(prompt.length());
  reply.set_block_size(prompt.block_size());
  *reply.mutable_block_hashes() = prompt.block_hashes();
  if (!sees_tokens) return;
  *reply.mutable_token_ids() = prompt.prompt().token_ids();
  reply.set_body(std::string(body));
}

}  // namespace penstock::proxy
