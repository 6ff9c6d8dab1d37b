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
# A call holds a place, and a place gives itself back to its dispatcher.
file(GLOB session_sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/src CONFIGURE_DEPENDS
     src/dispatch/*.cc src/admission/*.cc src/routing/*.cc)
set(frame_sources upstream/frame_reader.cc upstream/event_reader.cc upstream/call_event.cc
                  upstream/token_groups.cc upstream/group_record.cc)
penstock_fuzzer(session upstream/session_calls.cc upstream/call.cc upstream/call_checks.cc
                ${frame_sources} base/error.cc base/priority.cc ${session_sources})
penstock_fuzzer(frame ${frame_sources})
penstock_fuzzer(checks upstream/call_checks.cc ${frame_sources})
target_link_libraries(checks_fuzz PRIVATE penstock_proto)
target_include_directories(frame_fuzz PRIVATE ${fuzz_root}/..)
target_link_libraries(frame_fuzz PRIVATE penstock_proto)
penstock_fuzzer(program proxy/program_link.cc proxy/routing_question.cc admission/program_book.cc)
target_link_libraries(program_fuzz PRIVATE penstock_proto)
find_package(OpenSSL REQUIRED)
target_link_libraries(session_fuzz PRIVATE penstock_proto OpenSSL::Crypto)
find_library(NGHTTP2 nghttp2 REQUIRED)
target_link_libraries(grpc_fuzz PRIVATE penstock_proto ${NGHTTP2})
