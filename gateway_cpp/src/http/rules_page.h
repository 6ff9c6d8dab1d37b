// What the metrics page tells of shadows, canaries, router programs and records, which are not
// counted by deployment.
#pragma once

#include <vector>

#include "admission/canary_book.h"
#include "admission/program_book.h"
#include "admission/shadow_book.h"
#include "base/exposition.h"
#include "observe/record_store.h"

namespace penstock::http {

void add_shadows(base::Exposition& page, const std::vector<admission::ShadowRow>& shadows);
void add_canaries(base::Exposition& page, const std::vector<admission::CanaryRow>& canaries);
void add_programs(base::Exposition& page, const std::vector<admission::ProgramRow>& programs);
void add_explain(base::Exposition& page, const observe::RecordTotals& totals);

}  // namespace penstock::http
