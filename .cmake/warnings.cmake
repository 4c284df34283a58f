# isogloss_warnings: linked PRIVATE by the project's own tests, examples, programs and benchmarks.
add_library(isogloss_warnings INTERFACE)
# GCC 12 takes its own AVX-512 intrinsics for uses of uninitialised values, and "text" + string for a copy
# onto itself (its bugs 105593 and 105651).
target_compile_options(isogloss_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-sign-conversion  # part of -Wconversion for clang++ alone, and an Index subscripts every std::vector
    "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-uninitialized;-Wno-maybe-uninitialized;-Wno-restrict>"
    $<$<BOOL:${ISOGLOSS_WERROR}>:-Werror>)
