/// @file kernel/int8_gemm.hpp  Matrix products of floats whose factors are rounded to 8-bit integers, with exact sums.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/threads.hpp>
#include <limits>
#include <utility>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace isogloss::inline ISOGLOSS_CONFIGURATION::kernel {

/// C = S + A B for floats: A is rounded row by row and B column by column,
///
///     a_ik ≈ α_i p_ik,  α_i = max_k |a_ik| / 127      b_kj ≈ β_j q_kj,  β_j = max_k |b_kj| / 127      p, q in -127 … 127
///     c_ij = s_ij + α_i β_j Σ_k p_ik q_kj
///
/// The sums are exact, in 32 bits, so that c does not depend on the number of threads nor, but for how the last line is
/// rounded, on the instruction set. B is packed once; A is rounded in every product. q is stored as q + 128, from 1 to 255, since the
/// instruction VPDPBUSD multiplies unsigned by signed bytes: of each sum 128 Σ_k p_ik is taken off again.
struct Int8Gemm {
    static constexpr Index depth =
        4;  ///< terms of a sum that one instruction adds up, side by side in memory
    static constexpr Index columns = 32;    ///< columns of a panel of B, [k / 4, 32, 4]
    static constexpr Index most_rows = 14;  ///< rows of A whose sums are held in registers
    /// Terms of a sum up to which 32 bits hold it: 255 · 127 · k < 2³¹.
    static constexpr Index most_terms = std::numeric_limits<std::int32_t>::max() / (255 * 127);
    /// Bytes that product() rounds rows of A to at a time, if it has more than most_rows.
    static constexpr Index part_a = Index{1} << 20;

    /// Groups of 4 that k terms take, the last filled up with zeros.
    static Index groups(Index k) { return (k + depth - 1) / depth; }
    /// Columns of n, the last panel filled up with zeros: so many scales B has.
    static Index padded(Index n) { return (n + columns - 1) / columns * columns; }
    /// Bytes of a packed B [k, n].
    static Index size(Index k, Index n) { return padded(n) * groups(k) * depth; }
    /// Bytes of memory for product() with k terms and m rows: a row, and of A the rows, their scales and sums.
    static Index workspace(Index m, Index k) {
        const Index row = groups(k) * depth;
        return row + rows_at_a_time(m, k) * (row + numbers_of_row);
    }

    /// Packs b [k, n], which may be transposed and has to be finite, with k ≤ most_terms.
    static void pack(MatrixRef<const float> b, std::uint8_t* to, float* scale) {
        const Index k = b.height(), n = b.width();
        for (Index j = 0; j < padded(n); ++j) {
            float largest = 0;
            for (Index i = 0; j < n && i < k; ++i) largest = std::max(largest, std::abs(b(i, j)));
            scale[j] = largest / 127;
        }
        for (Index first = 0; first < n; first += columns)
            for (Index i = 0; i < groups(k) * depth; i += depth)
                for (Index j = first; j < first + columns; ++j)
                    for (Index l = i; l < i + depth; ++l)
                        *to++ = static_cast<std::uint8_t>(
                            128 +
                            (j < n && l < k && scale[j] > 0
                                 ? std::clamp(static_cast<int>(std::nearbyint(b(l, j) / scale[j])), -127, 127)
                                 : 0));
    }

    /// C = S + A B for A [m, k], not transposed, and B packed. `start` points to S, whose rows are `start_stride` apart: 0
    /// for one row that is added to all, null for S = 0; it may be C. A row of A that is not finite makes its row of C
    /// NaN. `memory` holds workspace() bytes, 64-byte aligned. The panels of B are shared by threads().
    static void product(MatrixRef<const float> a, const std::uint8_t* packed, const float* scale,
                        const float* start, Index start_stride, MatrixRef<float> c, std::byte* memory) {
        const Index k = a.cols, n = c.cols, stride = groups(k) * depth, some = rows_at_a_time(c.rows, k);
        auto* const row = reinterpret_cast<std::int8_t*>(memory);
        auto* const rounded = row + stride;
        auto* const row_scale = reinterpret_cast<float*>(memory + (some + 1) * stride);
        auto* const offset = reinterpret_cast<std::int32_t*>(row_scale + some);
        for (Index i = 0, m; i < c.rows; i += m) {
            m = std::min(some, c.rows - i);
            const Index blocks = (m + most_rows - 1) / most_rows, height = (m + blocks - 1) / blocks;
            for (Index r = 0; r < m; ++r) {
                round_row(k, a.row(i + r), row, row_scale[r], offset[r]);
                const Index block = r / height * height, here = std::min(height, m - block);
                std::int8_t* to = rounded + block * stride + (r - block) * depth;
                for (Index at = 0; at < stride; at += depth, to += here * depth)
                    std::copy_n(row + at, depth, to);
            }
            const bool shared = double(m) * double(k) * double(n) >= 4e6;
            parallel(n, columns, shared ? n : 1, [&](Index first, Index last, Index) {
                for (Index j = first; j < last; j += columns)
                    for (Index r = 0; r < m; r += height) {
                        const Index at = i + r;
                        multiply(std::min(height, m - r),
                                 {.a = rounded + r * stride,
                                  .a_scale = row_scale + r,
                                  .offset = offset + r,
                                  .b = packed + j * stride,
                                  .b_scale = scale + j,
                                  .groups = groups(k),
                                  .width = std::min(columns, n - j),
                                  .start = start ? start + at * start_stride + j : nullptr,
                                  .start_stride = start_stride,
                                  .c = c.row(at) + j,
                                  .c_stride = c.stride});
                    }
            });
        }
    }

private:
    static constexpr Index numbers_of_row = sizeof(float) + sizeof(std::int32_t);  // scale and sum

    static Index rows_at_a_time(Index m, Index k) {
        return std::min(m, std::max(most_rows, part_a / (groups(k) * depth + numbers_of_row)));
    }

    // p = a / α with α = max |a| / 127, zeros behind it, and 128 Σ p.
    static void round_row(Index k, const float* a, std::int8_t* to, float& scale, std::int32_t& offset) {
        float largest = 0, finite = 0;
        std::int32_t sum = 0;
        Index i = 0;
#ifdef __AVX512F__
        const auto mask = [&](Index at) {
            return static_cast<__mmask16>(k - at >= 16 ? 0xffff : (1 << (k - at)) - 1);
        };
        __m512 most = _mm512_setzero_ps(), zero = most;
        for (; i < k; i += 16) {
            const __m512 x = _mm512_maskz_loadu_ps(mask(i), a + i);
            most = _mm512_max_ps(most, _mm512_abs_ps(x));
            zero = _mm512_fmadd_ps(x, _mm512_setzero_ps(), zero);  // NaN where x is not finite
        }
        largest = _mm512_reduce_max_ps(most), finite = _mm512_reduce_add_ps(zero);
#else
        for (; i < k; ++i) largest = std::max(largest, std::abs(a[i])), finite += 0 * a[i];
#endif
        std::fill(to + groups(k) * depth - std::min(depth, groups(k) * depth), to + groups(k) * depth,
                  std::int8_t{0});
        if (finite != 0 || !(largest > 0)) {
            std::fill_n(to, k, std::int8_t{0});
            scale = finite, offset = 0;
            return;
        }
        // A subnormal largest has no reciprocal; its row counts as zero, as the passes' subnormal numbers do.
        const float inverse = 127 / largest;
        scale = std::isfinite(inverse) ? largest / 127 : 0;
        i = 0;
#ifdef __AVX512F__
        const __m512 factor = _mm512_set1_ps(std::isfinite(inverse) ? inverse : 0);
        __m512i sums = _mm512_setzero_si512();
        for (; i < k; i += 16) {
            const __m512i p =
                _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask(i), a + i), factor));
            sums = _mm512_add_epi32(sums, p);
            _mm512_mask_cvtsepi32_storeu_epi8(to + i, mask(i), p);
        }
        sum = _mm512_reduce_add_epi32(sums);
#else
        const float factor = std::isfinite(inverse) ? inverse : 0;
        for (; i < k; ++i) {
            to[i] = static_cast<std::int8_t>(std::nearbyint(a[i] * factor));
            sum += to[i];
        }
#endif
        offset = 128 * sum;
    }

    // Rows of A, [k / 4, rows, 4], times a panel of B.
    struct Block {
        const std::int8_t* a;
        const float* a_scale;
        const std::int32_t* offset;
        const std::uint8_t* b;
        const float* b_scale;
        Index groups, width;
        const float* start;
        Index start_stride;
        float* c;
        Index c_stride;
    };

    static void multiply(Index rows, const Block& block) {
        static constexpr auto by_rows = []<std::size_t... r>(std::index_sequence<r...>) {
            return std::array{&multiply_rows<static_cast<int>(r) + 1>...};
        }
        (std::make_index_sequence<most_rows>{});
        by_rows[static_cast<std::size_t>(rows - 1)](block);
    }

#ifdef __AVX512VNNI__
    // By constant indices all sums stay in registers.
    template <int rows> static void multiply_rows(const Block& o) {
        [&o]<std::size_t... r>(std::index_sequence<r...>) {
            __m512i left[rows] = {((void)r, _mm512_setzero_si512())...},
                    right[rows] = {((void)r, _mm512_setzero_si512())...};
            const std::int8_t* a = o.a;
            const std::uint8_t* b = o.b;
            // B comes from beyond the second cache, and the next panel in time only if it is asked for: 14 rows by [640,
            // 2560] run at 1.7 times the speed with it.
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
    // By words of 16 bits, three rows at a time by half a panel: their sums stay in 12 registers.
    template <int rows> static void add_up(const Block& o, std::int32_t* sum) {
        constexpr int some = rows < 3 ? rows : 3;
        for (int r = 0; r < rows; r += some)
            for (const Index half : {Index{0}, columns / 2}) {
                std::int32_t* const to = sum + r * columns + half;
                if (r + some <= rows) add_rows<rows>(o, r, half, to, std::make_index_sequence<some>{});
                else add_rows<rows>(o, r, half, to, std::make_index_sequence<rows % some>{});
            }
    }
    template <int rows, std::size_t... r> static void add_rows(const Block& o, Index first, Index half,
                                                               std::int32_t* to, std::index_sequence<r...>) {
        if constexpr (sizeof...(r) > 0) {
            struct Sums {
                __m256i part[4];  // each of four columns, of which each has two numbers
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

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::kernel
