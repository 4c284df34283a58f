# isogloss_warnings: linked PRIVATE by the project's own tests, examples and benchmarks.
add_library(isogloss_warnings INTERFACE)
# GCC 12 takes its own AVX-512 intrinsics for uses of uninitialised values.
target_compile_options(isogloss_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized>
    $<$<BOOL:${ISOGLOSS_WERROR}>:-Werror>)
