#include "dialects/errors.h"

#include "anthropic/errors.h"
#include "openai/errors.h"

namespace penstock::dialects {

std::string error_body(openai::Dialect dialect, const base::Error& error,
                       std::string_view request_id) {
  return dialect == openai::Dialect::kAnthropic ? anthropic::error_body(error, request_id)
                                                : openai::error_body(error);
}

}  // namespace penstock::dialects
