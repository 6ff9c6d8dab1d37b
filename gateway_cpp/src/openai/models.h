// The bodies of /v1/models and /v1/models/{id}, with the fields of OpenAI's API and of Anthropic's,
// so that either SDK reads them. Who may be named is routing's knowledge: callers
// make the cards from Routes::names().
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace penstock::openai {

// One name that a client may put into "model".
struct ModelCard {
  std::string id;            // "deployment" or "deployment:alias"
  std::string root;          // what the engine loaded, or the adapter version behind an alias
  std::string parent;        // the deployment of an adapter; empty: null on the wire
  std::int64_t created = 0;  // seconds since 1970
  std::uint32_t max_model_len = 0;  // tokens; 0: null on the wire
};

std::string model_body(const ModelCard& card);
std::string model_list_body(std::span<const ModelCard> cards);

// "org%2Fadapter%20v1" to "org/adapter v1", as SDKs encode ids in paths. A broken escape stays as
// it is.
std::string percent_decode(std::string_view text);

}  // namespace penstock::openai
