# Takes from the compiler's cache what was compiled before, where there is a ccache: for every CMake
# project, before its targets.
find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers pass through only with these allowances. What a source reads is what the
  # compiler says of it: to preprocess each one first takes a seventh of all the time.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_BASEDIR=${CMAKE_CURRENT_LIST_DIR}/..
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
