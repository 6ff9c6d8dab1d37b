#include "http/content_coding.h"

#include "http/syntax.h"

namespace penstock::http {

Coding coding_of(const RequestHead& head) {
  const std::string_view name = head.content_encoding;
  if (name.empty() || same_text(name, "identity")) return Coding::kIdentity;
  const bool is_gzip = same_text(name, "gzip") || same_text(name, "x-gzip");
  return is_gzip ? Coding::kGzip : Coding::kUnknown;
}

}  // namespace penstock::http
