/// @file kernel/int8_micro.hpp  Sums of products of 8-bit integers, for AVX-512-VNNI, AVX2, SDOT of ARM and any processor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <isogloss/kernel/neon.hpp>
#include <isogloss/types.hpp>
#include <utility>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// A few rows of p times a panel of q + 128, both in groups of 4 terms: the micro-kernel of Int8Gemm.
///
///     c_rj = s_rj + α_r β_j (Σ_k p_rk (q_kj + 128) - offset_r),   offset_r = 128 Σ_k p_rk
///
/// All code paths give the same bits: the sum, exact, becomes a float, α β is rounded, then one fused multiply-add.
struct Int8Micro {
    static constexpr Index depth = 4;       ///< terms that VPDPBUSD adds up, adjacent in memory
    static constexpr Index columns = 32;    ///< of a panel of q, [k / 4, 32, 4]
    static constexpr Index most_rows = 14;  ///< whose sums are held in registers

    /// The rows and the panel.
    struct Block {
        const std::int8_t* a;        ///< p, [k / 4, rows, 4]
        const float* a_scale;        ///< α
        const std::int32_t* offset;  ///< see above
        const std::uint8_t* b;       ///< q + 128
        const float* b_scale;        ///< β, of all 32 columns
        Index groups, width;         ///< k / 4, and columns that C has
        const float* start;          ///< s, or null for 0
        Index start_stride;
        float* c;
        Index c_stride;
    };

    /// For 1 to most_rows rows.
    static void multiply(Index rows, const Block& block) {
        static constexpr auto by_rows = []<std::size_t... r>(std::index_sequence<r...>) {
            return std::array{&multiply_rows<static_cast<int>(r) + 1>...};
        }
        (std::make_index_sequence<most_rows>{});
        by_rows[static_cast<std::size_t>(rows - 1)](block);
    }

private:
#ifdef __AVX512VNNI__
    // Constant indices keep all sums in registers.
    template <int rows> static void multiply_rows(const Block& o) {
        [&o]<std::size_t... r>(std::index_sequence<r...>) {
            __m512i left[rows] = {((void)r, _mm512_setzero_si512())...},
                    right[rows] = {((void)r, _mm512_setzero_si512())...};
            const std::int8_t* a = o.a;
            const std::uint8_t* b = o.b;
            // B comes from beyond the L2 cache, and the next panel arrives in time only if prefetched: this makes
            // 14 rows by [640, 2560] 1.7 times as fast.
            const Index next = o.groups * columns * depth;
            for (Index g = 0; g < o.groups; ++g, a += rows * depth, b += columns * depth) {
                const __m512i q_left = _mm512_loadu_si512(b), q_right = _mm512_loadu_si512(b + 64);
                _mm_prefetch(b + next, _MM_HINT_T1);
                _mm_prefetch(b + next + 64, _MM_HINT_T1);
                const auto add = [&](const std::int8_t* four_terms, __m512i& sum_left, __m512i& sum_right) {
                    std::int32_t four;
                    std::memcpy(&four, four_terms, sizeof four);
                    const __m512i p = _mm512_set1_epi32(four);
                    sum_left = _mm512_dpbusd_epi32(sum_left, q_left, p);
                    sum_right = _mm512_dpbusd_epi32(sum_right, q_right, p);
                };
                (add(a + static_cast<Index>(r) * depth, left[r], right[r]), ...);
            }
            const Half first(o, 0), second(o, 16);
            ((first.store(o, r, left[r]), second.store(o, r, right[r])), ...);
        }
        (std::make_index_sequence<rows>{});
    }
    // 16 columns of the panel, to be stored.
    struct Half {
        Index at;
        __mmask16 mask;
        __m512 scale;
        Half(const Block& o, Index first)
            : at(first),
              mask(static_cast<__mmask16>((1u << std::clamp<Index>(o.width - first, 0, 16)) - 1u)),
              scale(_mm512_loadu_ps(o.b_scale + first)) {}
        void store(const Block& o, std::size_t row, __m512i sums) const {
            const auto r = static_cast<Index>(row);
            const __m512 exact = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(o.offset[r]))),
                         s = o.start ? _mm512_maskz_loadu_ps(mask, o.start + r * o.start_stride + at)
                                     : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(
                o.c + r * o.c_stride + at, mask,
                _mm512_fmadd_ps(exact, _mm512_mul_ps(scale, _mm512_set1_ps(o.a_scale[r])), s));
        }
    };
#else
    template <int rows> static void multiply_rows(const Block& o) {
        alignas(32) std::int32_t sum[rows][columns];
        add_up<rows>(o, &sum[0][0]);
        for (int r = 0; r < rows; ++r)
            for (Index j = 0; j < o.width; ++j) {
                const float s = o.start ? o.start[r * o.start_stride + j] : 0;
                o.c[r * o.c_stride + j] =
                    std::fma(static_cast<float>(sum[r][j] - o.offset[r]), o.b_scale[j] * o.a_scale[r], s);
            }
    }
#ifdef __AVX2__
    // In 16-bit words, three rows at a time by half a panel: their sums stay in 12 registers.
    template <int rows> static void add_up(const Block& o, std::int32_t* sum) {
        constexpr int count = rows < 3 ? rows : 3;
        for (int r = 0; r < rows; r += count)
            for (const Index half : {Index{0}, columns / 2}) {
                std::int32_t* const to = sum + r * columns + half;
                if (r + count <= rows) add_rows<rows>(o, r, half, to, std::make_index_sequence<count>{});
                else add_rows<rows>(o, r, half, to, std::make_index_sequence<rows % count>{});
            }
    }
    template <int rows, std::size_t... r> static void add_rows(const Block& o, Index first, Index half,
                                                               std::int32_t* to, std::index_sequence<r...>) {
        if constexpr (sizeof...(r) > 0) {
            struct Sums {
                __m256i part[4];  // four columns each, with two numbers per column
            };
            Sums s[sizeof...(r)] = {((void)r, Sums{})...};
            const std::int8_t* a = o.a + first * depth;
            const std::uint8_t* b = o.b + half * depth;
            for (Index g = 0; g < o.groups; ++g, a += rows * depth, b += columns * depth) {
                const auto words = [b](int quarter) {
                    return _mm256_cvtepu8_epi16(
                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16 * quarter)));
                };
                const auto add = [](__m256i& sums, __m256i q, __m256i p) {
                    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(q, p));
                };
                const auto terms = [](const std::int8_t* at) {
                    std::int32_t four;
                    std::memcpy(&four, at, sizeof four);
                    return _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
                };
                const __m256i p[] = {terms(a + static_cast<Index>(r) * depth)...};
                const __m256i q0 = words(0);
                (add(s[r].part[0], q0, p[r]), ...);
                const __m256i q1 = words(1);
                (add(s[r].part[1], q1, p[r]), ...);
                const __m256i q2 = words(2);
                (add(s[r].part[2], q2, p[r]), ...);
                const __m256i q3 = words(3);
                (add(s[r].part[3], q3, p[r]), ...);
            }
            const auto store = [](const Sums& sums, std::int32_t* row) {
                for (int i = 0; i < 2; ++i)
                    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + 8 * i),
                                        _mm256_permute4x64_epi64(
                                            _mm256_hadd_epi32(sums.part[2 * i], sums.part[2 * i + 1]), 0xd8));
            };
            (store(s[r], to + static_cast<Index>(r) * columns), ...);
        }
    }
#elif defined(__ARM_FEATURE_DOTPROD)
    template <int rows> static void add_up(const Block& o, std::int32_t* sum) {
        add_up_int8<rows>(o.a, o.b, o.groups, o.offset, sum);
    }
#else
    template <int rows> static void add_up(const Block& o, std::int32_t* sum) {
        std::fill_n(sum, rows * columns, 0);
        for (Index g = 0; g < o.groups; ++g)
            for (int r = 0; r < rows; ++r) {
                const std::int8_t* const a = o.a + (g * rows + r) * depth;
                const std::uint8_t* const b = o.b + g * columns * depth;
                for (Index j = 0; j < columns; ++j)
                    for (Index l = 0; l < depth; ++l)
                        sum[r * columns + j] += std::int32_t{a[l]} * std::int32_t{b[j * depth + l]};
            }
    }
#endif
#endif
};

}}}  // namespace isogloss::kernel
