/// @file kernel/bf16_micro.hpp  The innermost part of products in bfloat16, for each instruction set that has one.
#pragma once

#include <algorithm>
#include <cstring>
#include <isogloss/kernel/bf16.hpp>
#include <isogloss/kernel/neon.hpp>
#include <utility>

// clang up to 15 spells the macros without the second underscore.
#if (defined(__AMX_TILE__) || defined(__AMXTILE__)) && (defined(__AMX_BF16__) || defined(__AMXBF16__)) && \
    defined(__AVX512BF16__) && defined(__linux__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define ISOGLOSS_DETAIL_AMX 1
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

namespace plain {

/// The micro-kernel for any processor.
struct Bf16Micro {
    static constexpr bool any_size = false;
    void multiply(const Bf16Block& block) const {
        constexpr Index columns = Bf16Tiles::columns, depth = Bf16Tiles::depth;
        for (Index p = 0; p < block.row_panels(); ++p)
            for (Index q = 0; q < block.column_panels(); ++q)
                for (Index r = 0; r < block.rows; ++r) {
                    float* c = block.c + (p * block.rows + r) * block.c_stride + q * columns;
                    float sum[columns] = {};
                    if (block.start)
                        std::copy_n(block.start + (p * block.rows + r) * block.start_stride + q * columns,
                                    columns, sum);
                    for (Index tile = 0; tile < Bf16Tiles::tiles(block.terms); ++tile) {
                        const Bf16* a = block.a + p * block.a_panel + (tile * block.rows + r) * depth;
                        const Bf16* b = block.b + q * block.b_panel + tile * columns * depth;
                        for (Index i = 0; i < depth; i += 2, b += 2 * columns) {
                            const float even = to_float(a[i]), odd = to_float(a[i + 1]);
                            for (Index j = 0; j < columns; ++j)
                                sum[j] += even * to_float(b[2 * j]) + odd * to_float(b[2 * j + 1]);
                        }
                    }
                    std::copy(sum, sum + columns, c);
                }
    }
};

}  // namespace plain

#if defined(__AVX512BF16__)
/// The micro-kernel for VDPBF16PS, two multiply-adds a lane.
struct Avx512Bf16Micro {
    static constexpr bool any_size = true;
    void multiply(const Bf16Block& block) const {
        for (Index p = 0; p < block.row_panels(); ++p) {
            // Parts as even as possible: two rows alone would wait for their own sums.
            const Index rows = std::min(block.rows, block.height - p * block.rows),
                        parts = (rows + MR - 1) / MR, height = (rows + parts - 1) / parts;
            for (Index r = 0; r < rows; r += height) {
                const Index count = std::min(height, rows - r);
                if (block.column_panels() == 2) of_height<2>(block, p, r, count, Heights());
                else of_height<1>(block, p, r, count, Heights());
            }
        }
    }

private:
    static constexpr int MR = 12;  // with two columns 24 sums, which leaves registers for A and B
    using Heights = std::make_integer_sequence<int, MR>;

    template <int Q, int... R> static void of_height(const Bf16Block& block, Index p, Index first,
                                                     Index count, std::integer_sequence<int, R...>) {
        static_cast<void>(((count == R + 1 && (rows<R + 1, Q>(block, p, first), true)) || ...));
    }

    // Rows [first, first + R) of panel p of A.
    template <int R, int Q> static void rows(const Bf16Block& block, Index p, Index first) {
        __m512 sum[R][Q];
        const Index row = p * block.rows + first;
        float* c = block.c + row * block.c_stride;
        const auto mask = [&](int q) {
            return static_cast<__mmask16>(q < Q - 1 ? 0xffff
                                                    : (1u << (block.width - q * Bf16Tiles::columns)) - 1u);
        };
        for (int r = 0; r < R; ++r)
            for (int q = 0; q < Q; ++q)
                sum[r][q] =
                    block.start
                        ? _mm512_maskz_loadu_ps(
                              mask(q), block.start + (row + r) * block.start_stride + q * Bf16Tiles::columns)
                        : _mm512_setzero_ps();
        const Bf16 *a = block.a + p * block.a_panel + first * Bf16Tiles::depth, *b = block.b;
        // The last tile only as far as it has terms: of 200 it would be an eighth more.
        for (Index left = block.terms; left > 0; left -= Bf16Tiles::depth, a += block.rows * Bf16Tiles::depth)
            for (Index i = 0; i < std::min(left, Bf16Tiles::depth); i += 2, b += 2 * Bf16Tiles::columns) {
                __m512bh right[Q];
                for (int q = 0; q < Q; ++q)
                    right[q] = std::bit_cast<__m512bh>(_mm512_loadu_si512(b + q * block.b_panel));
#pragma GCC unroll 12
                for (int r = 0; r < R; ++r) {
                    int pair;
                    std::memcpy(&pair, a + r * Bf16Tiles::depth + i, sizeof(pair));
                    const auto left_pair = std::bit_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
                    for (int q = 0; q < Q; ++q) sum[r][q] = _mm512_dpbf16_ps(sum[r][q], left_pair, right[q]);
                }
            }
        for (int r = 0; r < R; ++r)
            for (int q = 0; q < Q; ++q)
                _mm512_mask_storeu_ps(c + r * block.c_stride + q * Bf16Tiles::columns, mask(q), sum[r][q]);
    }
};
#endif

#ifdef ISOGLOSS_DETAIL_AMX
/// The micro-kernel for the matrix unit of Intel processors (TDPBF16PS): two by two tiles of sums.
struct AmxMicro {
    static constexpr bool any_size = false;
    /// Configures the unit for panels of `rows` rows, for the calling thread.
    explicit AmxMicro(Index rows) {
        struct alignas(64) {
            std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
            std::uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } configuration;
        std::fill_n(configuration.rows, 6, static_cast<std::uint8_t>(rows));
        // The compiler does not know that the instruction reads all of it, and would take members for unused.
        asm volatile("" : : "r"(&configuration) : "memory");
        _tile_loadconfig(&configuration);
    }
    ~AmxMicro() { _tile_release(); }
    AmxMicro(const AmxMicro&) = delete;
    AmxMicro& operator=(const AmxMicro&) = delete;

    /// Whether the operating system lets this process use the unit.
    static bool is_available() {
        constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
        static const bool granted = ::syscall(SYS_arch_prctl, request, tile_data) == 0;
        return granted;
    }

    void multiply(const Bf16Block& block) const {
        if (block.row_panels() == 2) {
            if (block.column_panels() == 2) run<2, 2>(block);
            else run<2, 1>(block);
        } else if (block.column_panels() == 2) {
            run<1, 2>(block);
        } else {
            run<1, 1>(block);
        }
    }

private:
    template <int P, int Q> static void run(const Bf16Block& block) {
        constexpr Index columns = Bf16Tiles::columns, bytes = 64;
        float *c = block.c, *below = c + block.rows * block.c_stride;
        const auto stride = block.c_stride * Index{sizeof(float)};
        asm volatile("" ::: "memory");  // the loads of tiles do not tell the compiler that they read memory
        if (!block.start) {
            _tile_zero(0);
            if constexpr (Q == 2) _tile_zero(1);
            if constexpr (P == 2) _tile_zero(2);
            if constexpr (P == 2 && Q == 2) _tile_zero(3);
        } else {
            const float *start = block.start, *start_below = start + block.rows * block.start_stride;
            const auto apart = block.start_stride * Index{sizeof(float)};
            _tile_loadd(0, start, apart);
            if constexpr (Q == 2) _tile_loadd(1, start + columns, apart);
            if constexpr (P == 2) _tile_loadd(2, start_below, apart);
            if constexpr (P == 2 && Q == 2) _tile_loadd(3, start_below + columns, apart);
        }
        const Bf16 *a = block.a, *b = block.b;
        for (Index tile = 0; tile < Bf16Tiles::tiles(block.terms); ++tile) {
            _tile_loadd(6, b, bytes);
            _tile_loadd(4, a, bytes);
            _tile_dpbf16ps(0, 4, 6);
            if constexpr (P == 2) {
                _tile_loadd(5, a + block.a_panel, bytes);
                _tile_dpbf16ps(2, 5, 6);
            }
            if constexpr (Q == 2) {
                _tile_loadd(7, b + block.b_panel, bytes);
                _tile_dpbf16ps(1, 4, 7);
                if constexpr (P == 2) _tile_dpbf16ps(3, 5, 7);
            }
            a += block.rows * Bf16Tiles::depth;
            b += columns * Bf16Tiles::depth;
        }
        _tile_stored(0, c, stride);
        if constexpr (Q == 2) _tile_stored(1, c + columns, stride);
        if constexpr (P == 2) _tile_stored(2, below, stride);
        if constexpr (P == 2 && Q == 2) _tile_stored(3, below + columns, stride);
    }
};
#endif

/// Calls f(micro-kernel) with the fastest of these that this process may use, set up for panels of `rows` rows.
template <class F> void with_bf16_micro([[maybe_unused]] Index rows, F&& f) {
#ifdef ISOGLOSS_DETAIL_AMX
    if (AmxMicro::is_available()) return f(AmxMicro(rows));
#endif
#ifdef __AVX512BF16__
    f(Avx512Bf16Micro());
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    f(BfmmlaMicro());
#else
    f(plain::Bf16Micro());
#endif
}

/// The micro-kernel that with_bf16_micro() chooses: "amx", "avx512bf16", "bfmmla" or "plain".
inline const char* bf16_micro_name() {
#ifdef ISOGLOSS_DETAIL_AMX
    if (AmxMicro::is_available()) return "amx";
#endif
#ifdef __AVX512BF16__
    return "avx512bf16";
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    return "bfmmla";
#else
    return "plain";
#endif
}

}}}  // namespace isogloss::kernel
