/// @file kernel/bf16.hpp  bfloat16, a storage type, and the packing of matrices for products in it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <isogloss/matrix_ref.hpp>

#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#include <immintrin.h>
#endif

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

/// A bfloat16: the sign, the exponent and the first 7 bits of the fraction of a float. A storage type, not for
/// arithmetic.
struct Bf16 {
    std::uint16_t bits;
};

/// Rounds to the nearest bfloat16, ties to even. What is too large becomes infinite, NaN stays NaN, a subnormal
/// number becomes zero; as the instruction VCVTNEPS2BF16 does.
inline Bf16 to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t exponent = bits & 0x7f800000u, sign = bits & 0x80000000u;
    if (exponent == 0) return {static_cast<std::uint16_t>(sign >> 16)};
    if (exponent == 0x7f800000u && (bits & 0x007fffffu))
        return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
/// The same number as a float.
inline float to_float(Bf16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

/// Matrices packed for products in bfloat16, by tiles as the matrix unit of a processor (AMX) reads them:
///
///     A [m, k]   panels of `rows` ≤ 16 rows, one after the other, each [k / 32, rows, 32]
///     B [k, n]   panels of 16 columns, each [k / 32, 16, 16, 2]: two rows of B side by side, column by column
///
/// Both are padded with zeros to full tiles.
struct Bf16Tiles {
    static constexpr Index depth = 32;      ///< terms of a sum in a tile
    static constexpr Index columns = 16;    ///< columns of a tile of B
    static constexpr Index most_rows = 16;  ///< rows of a tile of A

    /// Number of tiles for k terms.
    static Index tiles(Index k) { return (k + depth - 1) / depth; }
    /// Panels of A [m, k], as even as possible, and the rows of each.
    static Index row_panels(Index m) { return (m + most_rows - 1) / most_rows; }
    /// See row_panels().
    static Index panel_rows(Index m) { return (m + row_panels(m) - 1) / row_panels(m); }
    /// Panels of B [k, n].
    static Index column_panels(Index n) { return (n + columns - 1) / columns; }
    /// Elements of the packed A and of the packed B.
    static Index size_a(Index m, Index k) { return row_panels(m) * panel_rows(m) * tiles(k) * depth; }
    /// See size_a().
    static Index size_b(Index k, Index n) { return column_panels(n) * columns * tiles(k) * depth; }

    /// Packs a, which may be transposed, with panels of `rows` rows.
    static void pack_a(MatrixRef<const float> a, Index rows, Bf16* to) { pack(a, rows, false, to); }
    /// Packs b, which may be transposed.
    static void pack_b(MatrixRef<const float> b, Bf16* to) { pack(t(b), columns, true, to); }

private:
    // Panels of `rows` rows, tile by tile: row by row, or two columns side by side with `in_pairs`.
    static void pack(MatrixRef<const float> a, Index rows, bool in_pairs, Bf16* to) {
        const Index m = a.height(), k = a.width();
        alignas(64) Bf16 other[columns * depth];  // a tile in the other form, if it is read in that
        const auto tile = [&](Index first, Index at) {
            const Index here = std::min(rows, m - first), terms = std::min(depth, k - at);
            Bf16* const target = to + (first * tiles(k) + at / depth * rows) * depth;
            Bf16* const read = a.transposed == in_pairs ? target : other;
            if (a.transposed) interleave_rows(a.data + at * a.stride + first, a.stride, terms, here, read);
            else
                for (Index r = 0; r < rows; ++r)
                    convert(r < here ? a.row(first + r) + at : nullptr, terms, read + r * depth);
            if (read == other) transpose(other, target, rows);
        };
        // Along the rows in memory.
        if (a.transposed) {
            for (Index at = 0; at < k; at += depth)
                for (Index first = 0; first < m; first += rows) tile(first, at);
        } else {
            for (Index first = 0; first < m; first += rows)
                for (Index at = 0; at < k; at += depth) tile(first, at);
        }
    }

    // Converts `count` ≤ 32 floats, or none from null, and pads them with zeros.
    static void convert(const float* from, Index count, Bf16* to) {
        if (!from) count = 0;
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
        const auto mask = [&](Index n) {
            return static_cast<__mmask16>((1u << std::clamp<Index>(n, 0, 16)) - 1u);
        };
        const __m512 low = _mm512_maskz_loadu_ps(mask(count), from),
                     high = _mm512_maskz_loadu_ps(mask(count - 16), from + (count > 16 ? 16 : 0));
        _mm512_storeu_si512(to, std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
#else
        for (Index i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
        std::fill(to + count, to + depth, Bf16{0});
#endif
    }

    // The first `terms` ≤ 32 rows of 16 columns, of which `count` exist, two rows side by side.
    static void interleave_rows(const float* from, Index stride, Index terms, Index count, Bf16* to) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
        const auto here = static_cast<__mmask16>((1u << count) - 1u);
        alignas(64) static constexpr std::uint16_t order[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        const __m512i side_by_side = _mm512_load_si512(order);
        for (Index i = 0; i < depth; i += 2, to += 2 * columns) {
            const __m512 even = _mm512_maskz_loadu_ps(i < terms ? here : __mmask16{0}, from + i * stride),
                         odd = _mm512_maskz_loadu_ps(i + 1 < terms ? here : __mmask16{0},
                                                     from + (i + 1) * stride);
            _mm512_storeu_si512(
                to, _mm512_permutexvar_epi16(side_by_side,
                                             std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even))));
        }
#else
        for (Index i = 0; i < depth; ++i)
            for (Index j = 0; j < columns; ++j)
                to[(i / 2 * columns + j) * 2 + i % 2] =
                    i < terms && j < count ? to_bf16(from[i * stride + j]) : Bf16{0};
#endif
    }

    // The first `rows` rows of the transpose of a tile of 16 by 16 pairs.
    static void transpose(const Bf16* from, Bf16* to, Index rows) {
        if (rows == columns) return transpose(from, to);
        alignas(64) Bf16 whole[columns * depth];
        transpose(from, whole);
        std::copy_n(whole, rows * depth, to);
    }
    static void transpose(const Bf16* from, Bf16* to) {
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
        // In four rounds, each of which interleaves rows 1, 2, 4 or 8 apart.
        __m512i a[16], b[16];
        for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(from + i * depth);
        for (int i = 0; i < 16; i += 2) {
            b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
            b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
        }
        for (int i = 0; i < 16; i += 4)
            for (int j = 0; j < 2; ++j) {
                a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + 2 + j]);
                a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + 2 + j]);
            }
        for (int i = 0; i < 16; i += 8)
            for (int j = 0; j < 4; ++j) {
                b[i + j] = _mm512_shuffle_i32x4(a[i + j], a[i + 4 + j], 0x88);
                b[i + 4 + j] = _mm512_shuffle_i32x4(a[i + j], a[i + 4 + j], 0xdd);
            }
        for (int j = 0; j < 8; ++j) {
            _mm512_storeu_si512(to + j * depth, _mm512_shuffle_i32x4(b[j], b[8 + j], 0x88));
            _mm512_storeu_si512(to + (8 + j) * depth, _mm512_shuffle_i32x4(b[j], b[8 + j], 0xdd));
        }
#else
        for (Index i = 0; i < columns; ++i)
            for (Index j = 0; j < columns; ++j)
                std::copy_n(from + j * depth + 2 * i, 2, to + i * depth + 2 * j);
#endif
    }
};

/// One call of a micro-kernel: C [height, width] = S + A B over `terms` terms, for at most two panels of A and two of B.
/// A micro-kernel whose `any_size` is false takes only whole panels.
struct Bf16Block {
    Index height, width;
    Index terms;
    Index rows;              ///< of a panel of A
    const Bf16 *a, *b;       ///< packed, see Bf16Tiles
    Index a_panel, b_panel;  ///< elements from one panel to the next
    const float*
        start;  ///< S, of C's size: null for 0, C itself to add to it, one row with stride 0 for all rows
    Index start_stride;
    float* c;
    Index c_stride;

    Index row_panels() const { return (height + rows - 1) / rows; }
    Index column_panels() const { return Bf16Tiles::column_panels(width); }
};

}}}  // namespace isogloss::kernel
