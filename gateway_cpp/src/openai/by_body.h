// Which endpoint a body is for where the path does not say: /invocations, as SageMaker asks for it.
#pragma once

#include <simdjson.h>

#include "base/error.h"
#include "openai/endpoints.h"

namespace penstock::openai {

// Chat or completions, by the prompt that the body has; `no` says what is missing where that may be
// neither, or both. Leaves the document at its beginning.
simdjson::error_code choose_by_body(simdjson::ondemand::document& document,
                                    const Endpoint*& endpoint, base::MaybeError& no);

}  // namespace penstock::openai
