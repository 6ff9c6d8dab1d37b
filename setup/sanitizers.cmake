# Sets `sanitizers`: what the environment of a test says to clang's sanitizers. Asks for `suppressions`:
# the file that names what ThreadSanitizer leaves out.
find_program(SYMBOLIZER NAMES llvm-symbolizer-16 llvm-symbolizer REQUIRED)  # tells lines to them
set(symbols external_symbolizer_path=${SYMBOLIZER})
set(tsan_options halt_on_error=1 ignore_noninstrumented_modules=1 ${symbols}
    suppressions=${suppressions})
list(JOIN tsan_options ":" tsan_options)
set(sanitizers TSAN_OPTIONS=${tsan_options} ASAN_OPTIONS=${symbols}
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:${symbols})
