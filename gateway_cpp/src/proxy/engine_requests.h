// What engines are asked for a router program, as messages; and what it is told of a prompt. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/v1/microserving.pb.h"
#include "penstock/v1/router.pb.h"
#include "upstream/call_request.h"

namespace penstock::proxy {

v1::TokenizeRequest tokenize_request(const upstream::CallRequest& client, std::string_view body);
v1::LookupRequest lookup_request(const v1::TokenizeReply& prompt);
// `end` 0, or beyond the prompt: all of it.
v1::PrepRecvRequest prepare_request(const v1::TokenizeReply& prompt, uint32_t end,
                                    std::string seq_id, std::chrono::milliseconds ttl);
v1::RemoteSendRequest send_request(const v1::TokenizeReply& prompt, const v1::KvAddress& to,
                                   uint32_t begin, uint32_t end, std::string seq_id,
                                   const upstream::CallRequest& client,
                                   std::chrono::milliseconds deadline);

// Ids and text only for a program that may see them.
void fill_tokenized(const v1::TokenizeReply& prompt, bool sees_tokens, std::string_view body,
                    v1::EngineReply& reply);

}  // namespace penstock::proxy
