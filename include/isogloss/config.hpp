/// @file config.hpp  The version, and the configuration set by the compiler flags.
#pragma once

#define ISOGLOSS_VERSION_MAJOR 0
#define ISOGLOSS_VERSION_MINOR 1
#define ISOGLOSS_VERSION_PATCH 0

#if defined(__GNUC__) && !defined(__OPTIMIZE__) && !defined(ISOGLOSS_UNOPTIMISED)
#pragma message( \
    "isogloss without optimisation runs 25 times slower: add -O2 -march=native, or -DISOGLOSS_UNOPTIMISED")
#endif

// The widest instruction set that the compiler flags allow (-march=…).
#if defined(__wasm_simd128__)
#define ISOGLOSS_DETAIL_MACHINE wasm_simd128
#elif defined(__AVX512BF16__) && (defined(__AMX_BF16__) || defined(__AMXBF16__))
#define ISOGLOSS_DETAIL_MACHINE avx512_amx
#elif defined(__AVX512BF16__)
#define ISOGLOSS_DETAIL_MACHINE avx512_bf16
#elif defined(__AVX512F__)
#define ISOGLOSS_DETAIL_MACHINE avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define ISOGLOSS_DETAIL_MACHINE avx2_fma
#elif defined(__AVX2__)
#define ISOGLOSS_DETAIL_MACHINE avx2
#elif defined(__AVX__)
#define ISOGLOSS_DETAIL_MACHINE avx
#elif defined(__SSE4_1__)
#define ISOGLOSS_DETAIL_MACHINE sse4
#elif defined(__SSE2__)
#define ISOGLOSS_DETAIL_MACHINE sse2
#elif defined(__ARM_FEATURE_SVE)
#define ISOGLOSS_DETAIL_MACHINE sve
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define ISOGLOSS_DETAIL_MACHINE neon_bf16
#elif defined(__ARM_NEON)
#define ISOGLOSS_DETAIL_MACHINE neon
#else
#define ISOGLOSS_DETAIL_MACHINE generic
#endif

// Whether the kernels are vectorised, and whether there are threads.
#ifdef XTENSOR_USE_XSIMD
#define ISOGLOSS_DETAIL_LANES xsimd
#else
#define ISOGLOSS_DETAIL_LANES scalar
#endif
#if defined(_OPENMP) && defined(ISOGLOSS_NO_BLAS)
#define ISOGLOSS_DETAIL_THREADS openmp_own
#elif defined(_OPENMP)
#define ISOGLOSS_DETAIL_THREADS openmp
#elif defined(ISOGLOSS_NO_BLAS)
#define ISOGLOSS_DETAIL_THREADS serial_own
#else
#define ISOGLOSS_DETAIL_THREADS serial
#endif

#define ISOGLOSS_DETAIL_JOIN(a, b, c, d, e, f) v##a##_##b##_##c##_##d##_##e##_##f
#define ISOGLOSS_DETAIL_NAME(a, b, c, d, e, f) ISOGLOSS_DETAIL_JOIN(a, b, c, d, e, f)
#define ISOGLOSS_DETAIL_QUOTE(...) #__VA_ARGS__
#define ISOGLOSS_DETAIL_TEXT(...) ISOGLOSS_DETAIL_QUOTE(__VA_ARGS__)

/// "0.1.0". Before 1.0 a minor version may change the interface.
#define ISOGLOSS_VERSION                         \
    ISOGLOSS_DETAIL_TEXT(ISOGLOSS_VERSION_MAJOR) \
    "." ISOGLOSS_DETAIL_TEXT(ISOGLOSS_VERSION_MINOR) "." ISOGLOSS_DETAIL_TEXT(ISOGLOSS_VERSION_PATCH)

/// The inline namespace of the whole library, such as v0_1_0_avx512_xsimd_openmp: version, instruction set,
/// lanes, threads. Names are written without it. Translation units that differ in one of these have distinct
/// symbols; otherwise the linker would silently use the code of one for both. Only plain numbers can pass between
/// such units: each has its own threads(), and an exception is caught as std::exception.
#define ISOGLOSS_CONFIGURATION                                                                   \
    ISOGLOSS_DETAIL_NAME(ISOGLOSS_VERSION_MAJOR, ISOGLOSS_VERSION_MINOR, ISOGLOSS_VERSION_PATCH, \
                         ISOGLOSS_DETAIL_MACHINE, ISOGLOSS_DETAIL_LANES, ISOGLOSS_DETAIL_THREADS)

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The name of the configuration of this translation unit.
inline const char* configuration() { return ISOGLOSS_DETAIL_TEXT(ISOGLOSS_CONFIGURATION); }

}}  // namespace isogloss
