// What a body's JSON is made of, and what one may have of it: an engine's loop pays by the element
// and not by the byte. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "base/config.h"
#include "base/error.h"

namespace penstock::openai {

struct Elements {
  std::size_t messages = 0;  // in lists of the body: messages, items, texts, documents; no numbers
  std::size_t parts = 0;     // in lists of those: contents, calls of tools; no numbers
  std::size_t tools = 0;
  std::size_t values = 0;  // of any kind, at any depth
};

inline bool is_over(const Elements& has, const base::BodyElements& most) {
  return has.messages > most.messages || has.parts > most.parts || has.tools > most.tools ||
         has.values > most.values;
}

// Of a body that is over: `field` is the one by which it came to be.
base::Error too_many(const Elements& has, const base::BodyElements& most, const std::string& field);

}  // namespace penstock::openai
