#include "routing/pick.h"

namespace penstock::routing {

std::string_view name(Verdict verdict) {
  constexpr std::array kNames = {std::string_view("taken"),   std::string_view("busier"),
                                 std::string_view("full"),    std::string_view("not_ready"),
                                 std::string_view("doubted"), std::string_view("tried"),
                                 std::string_view("unequal"), std::string_view("other_revision"),
                                 std::string_view("no_slot"), std::string_view("draining"),
                                 std::string_view("prefill")};
  return kNames[static_cast<std::size_t>(verdict)];
}

}  // namespace penstock::routing
