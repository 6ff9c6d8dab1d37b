# One fuzzer for each reader of foreign bytes, with the few sources that it tries: none of the
# libraries are asked for.
set(fuzz_root ${CMAKE_CURRENT_SOURCE_DIR}/../tests/gateway_cpp/fuzz)

# penstock_fuzzer(name sources...): tests/gateway_cpp/fuzz/<name>_fuzz.cc
function(penstock_fuzzer name)
  list(TRANSFORM ARGN PREPEND src/)
  add_executable(${name}_fuzz ${fuzz_root}/${name}_fuzz.cc ${ARGN})
  target_include_directories(${name}_fuzz PRIVATE src)
  target_compile_options(${name}_fuzz PRIVATE -Wall -Wextra -fsanitize=fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name}_fuzz PRIVATE Boost::headers)
endfunction()

penstock_fuzzer(head http/strict_head.cc)
penstock_fuzzer(chunks http/chunk_decoder.cc)
penstock_fuzzer(gunzip http/gunzip.cc)
find_package(ZLIB REQUIRED)
target_link_libraries(gunzip_fuzz PRIVATE ZLIB::ZLIB)
penstock_fuzzer(json openai/request.cc openai/by_body.cc openai/elements.cc openai/endpoints.cc
                openai/json_walk.cc base/error.cc)
target_link_libraries(json_fuzz PRIVATE simdjson::simdjson)
penstock_fuzzer(events openai/response_stream.cc openai/json_members.cc base/error.cc
                base/json_text.cc base/utf8_text.cc)
penstock_fuzzer(grpc upstream/grpc_codec.cc)
# A call holds a place, and a place gives itself back to its dispatcher: no foreign byte comes so far,
# and what the sanitizers add to these rooms takes two thirds of the fuzzers' compiler time.
file(GLOB place_sources CONFIGURE_DEPENDS src/dispatch/*.cc src/admission/*.cc src/routing/*.cc)
add_library(fuzz_places OBJECT ${place_sources})
target_include_directories(fuzz_places PRIVATE src)
target_compile_options(fuzz_places PRIVATE -Wall -Wextra -fno-sanitize=all)
target_link_libraries(fuzz_places PRIVATE Boost::headers)
# What reads frames, once for the three that try it.
add_library(fuzz_frames OBJECT src/upstream/frame_reader.cc src/upstream/event_reader.cc
            src/upstream/call_event.cc src/upstream/token_groups.cc src/upstream/group_record.cc)
target_include_directories(fuzz_frames PRIVATE src)
target_compile_options(fuzz_frames PRIVATE -Wall -Wextra -fsanitize=fuzzer)
target_link_libraries(fuzz_frames PRIVATE Boost::headers penstock_proto)
penstock_fuzzer(session upstream/session_calls.cc upstream/call.cc upstream/call_checks.cc
                base/error.cc base/priority.cc)
penstock_fuzzer(frame)
penstock_fuzzer(checks upstream/call_checks.cc)
target_link_libraries(checks_fuzz PRIVATE penstock_proto fuzz_frames)
target_include_directories(frame_fuzz PRIVATE ${fuzz_root}/..)
target_link_libraries(frame_fuzz PRIVATE penstock_proto fuzz_frames)
penstock_fuzzer(program proxy/program_link.cc proxy/routing_question.cc admission/program_book.cc)
target_link_libraries(program_fuzz PRIVATE penstock_proto)
find_package(OpenSSL REQUIRED)
target_link_libraries(session_fuzz PRIVATE penstock_proto fuzz_frames fuzz_places OpenSSL::Crypto)
find_library(NGHTTP2 nghttp2 REQUIRED)
target_link_libraries(grpc_fuzz PRIVATE penstock_proto ${NGHTTP2})
