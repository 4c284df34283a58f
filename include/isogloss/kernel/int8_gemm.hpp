/// @file kernel/int8_gemm.hpp  Matrix products of floats with factors rounded to 8-bit integers and exact sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/kernel/int8_micro.hpp>
#include <isogloss/matrix_ref.hpp>
#include <isogloss/threads.hpp>
#include <limits>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// C = S + A B for floats: A is rounded row by row and B column by column,
///
///     a_ik ≈ α_i p_ik,  α_i = max_k |a_ik| / 127      b_kj ≈ β_j q_kj,  β_j = max_k |b_kj| / 127      p, q in -127 … 127
///     c_ij = s_ij + α_i β_j Σ_k p_ik q_kj
///
/// The sums are exact, in 32 bits, and all code paths round the last line alike (Int8Micro), so that c depends neither
/// on the number of threads nor on the instruction set. B is packed once; A is rounded in every product. q is stored as
/// q + 128, from 1 to 255, as VPDPBUSD multiplies unsigned by signed bytes: 128 Σ_k p_ik is subtracted again.
struct Int8Gemm {
    static constexpr Index depth = Int8Micro::depth, columns = Int8Micro::columns,
                           most_rows = Int8Micro::most_rows;  ///< see Int8Micro
    /// Most terms of a sum that fits in 32 bits: 255 · 127 · k < 2³¹.
    static constexpr Index most_terms = std::numeric_limits<std::int32_t>::max() / (255 * 127);
    /// Bytes of rounded rows of A that product() holds at a time, if A has more than most_rows.
    static constexpr Index part_a = Index{1} << 20;

    /// Number of groups of 4 for k terms, the last padded with zeros.
    static Index groups(Index k) { return (k + depth - 1) / depth; }
    /// n columns padded with zeros to full panels: the number of scales of B.
    static Index padded(Index n) { return (n + columns - 1) / columns * columns; }
    /// Bytes of a packed B [k, n].
    static Index size(Index k, Index n) { return padded(n) * groups(k) * depth; }
    /// Bytes of memory for product() with k terms and m rows: one row, and the rows of A, their scales and sums.
    static Index workspace(Index m, Index k) {
        const Index row = groups(k) * depth;
        return row + rows_at_a_time(m, k) * (row + numbers_of_row);
    }

    /// Packs b [k, n], which may be transposed and must be finite, with k ≤ most_terms.
    static void pack(MatrixRef<const float> b, std::uint8_t* to, float* scale) {
        const Index k = b.height(), n = b.width();
        for (Index first = 0; first < n; first += columns) {
            const Index width = std::min(columns, n - first);
            float* const largest = scale + first;
            std::fill_n(largest, columns, 0.0F);
            for (Index i = 0; i < k; ++i)
                for (Index j = 0; j < width; ++j)
                    largest[j] = std::max(largest[j], std::abs(b(i, first + j)));
            for (Index j = 0; j < width; ++j) largest[j] /= 127;
            const auto rounded = [&](Index i, Index j) {
                if (i >= k || j >= width || !(scale[first + j] > 0)) return 0;
                const auto q = static_cast<int>(std::nearbyint(b(i, first + j) / scale[first + j]));
                return std::clamp(q, -127, 127);
            };
            for (Index i = 0; i < groups(k) * depth; i += depth)
                for (Index j = 0; j < columns; ++j)
                    for (Index l = i; l < i + depth; ++l)
                        *to++ = static_cast<std::uint8_t>(128 + rounded(l, j));
        }
    }

    /// C = S + A B for A [m, k], not transposed, and packed B. `start` points to S, or is null for S = 0; it may
    /// be C. Its rows are `start_stride` apart, 0 for one row added to all. A row of A that is not finite makes
    /// its row of C NaN. `memory` holds workspace() bytes, 64-byte aligned. threads() share the panels of B.
    static void product(MatrixRef<const float> a, const std::uint8_t* packed, const float* scale,
                        const float* start, Index start_stride, MatrixRef<float> c, std::byte* memory) {
        const Index k = a.cols, n = c.cols, stride = groups(k) * depth, count = rows_at_a_time(c.rows, k);
        auto* const row = reinterpret_cast<std::int8_t*>(memory);
        auto* const rounded = row + stride;
        auto* const row_scale = reinterpret_cast<float*>(memory + (count + 1) * stride);
        auto* const offset = reinterpret_cast<std::int32_t*>(row_scale + count);
        for (Index i = 0, m; i < c.rows; i += m) {
            m = std::min(count, c.rows - i);
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
                        Int8Micro::multiply(std::min(height, m - r),
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

    // p = a / α with α = max |a| / 127, padded with zeros, and 128 Σ p.
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
        // Below 127 / FLT_MAX, about 3.7e-37, a maximum has no finite reciprocal, and its row counts as zero.
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
};

}}}  // namespace isogloss::kernel
