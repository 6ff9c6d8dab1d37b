#include "upstream/token_groups.h"

namespace penstock::upstream {

// What nobody here knows would stand between the fields.
void append_groups(const v1::Chunk& chunk, std::string& bytes) {
  v1::Chunk told;
  *told.mutable_groups() = chunk.groups();
  told.DiscardUnknownFields();
  told.AppendToString(&bytes);
}

}  // namespace penstock::upstream
