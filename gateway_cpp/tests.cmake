# The tests, in one program. Their sources are the library's, so that a unity build reads a header
# once for both: half of the compiler's time.
enable_testing()
if(NOT measuring)
  add_test(NAME simulation.TellsOfEveryPolicy COMMAND simulation replicas=20 rate=60 seconds=5)
  set_tests_properties(simulation.TellsOfEveryPolicy PROPERTIES TIMEOUT 60
    FAIL_REGULAR_EXPRESSION "Sanitizer|runtime error"
    PASS_REGULAR_EXPRESSION "round_robin.*least_loaded.*power_of_two.*prefix_aware.*session")
  add_test(NAME simulation.TellsOfEveryPattern
    COMMAND simulation patterns rates=2 requests=50 seeds=1)
  set_tests_properties(simulation.TellsOfEveryPattern PROPERTIES TIMEOUT 60
    FAIL_REGULAR_EXPRESSION "Sanitizer|runtime error"
    PASS_REGULAR_EXPRESSION "data parallel.*P/D.*balanced.*double")
endif()
set(test_root ${CMAKE_CURRENT_SOURCE_DIR}/../tests/gateway_cpp)
set(test_rooms ${rooms} simulation)
if(PENSTOCK_SANITIZE MATCHES thread)  # pure functions of texts have nothing to show it
  list(REMOVE_ITEM test_rooms openai anthropic dialects simulation)
endif()
set(test_sources "")
foreach(room IN LISTS test_rooms)
  file(GLOB found CONFIGURE_DEPENDS ${test_root}/${room}/*.cc)
  list(APPEND test_sources ${found})
endforeach()
if(PENSTOCK_SANITIZE MATCHES thread)
  # What asks no second thread for anything has nothing to show it, either: threads of a test's own,
  # of servers and sessions, and the side threads that read large bodies and look for suspects.
  set(with_threads "thread|std::async|event_loop.h|fake_(service|head|comparer|replica).h"
      "session_fixture.h|[Ll]arge|[Ss]uspect")
  list(JOIN with_threads "|" with_threads)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test_sources})
  foreach(source IN LISTS test_sources)
    file(STRINGS ${source} threads REGEX "${with_threads}")
    if(NOT threads)
      list(REMOVE_ITEM test_sources ${source})
    endif()
  endforeach()
endif()

find_package(GTest REQUIRED)
target_sources(penstock_gateway PRIVATE ${test_sources})
target_include_directories(penstock_gateway PRIVATE ${test_root})
target_link_libraries(penstock_gateway PUBLIC GTest::gtest)
if(PENSTOCK_PCH)
  target_precompile_headers(penstock_gateway PRIVATE <gtest/gtest.h>)
endif()
add_executable(gateway_tests)
target_link_libraries(gateway_tests PRIVATE penstock_gateway GTest::gtest_main)
set_target_properties(gateway_tests PROPERTIES LINKER_LANGUAGE CXX)

set(suppressions ${CMAKE_CURRENT_SOURCE_DIR}/tsan.supp)
include(../setup/sanitizers.cmake)
# Few processes: to start one for each test takes longer than the tests.
set(shards 8)
math(EXPR last "${shards} - 1")
foreach(shard RANGE ${last})
  add_test(NAME gateway.${shard} COMMAND gateway_tests --gtest_brief=1)
  set_tests_properties(gateway.${shard} PROPERTIES TIMEOUT 300 ENVIRONMENT
    "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};${sanitizers}")
endforeach()
