/// @file kernel/neon.hpp  Sums of products by instructions that some 64-bit ARM processors have: BFMMLA, SDOT.
///
/// Empty where the compiler's flags do not allow them (-march=armv8.2-a+bf16+dotprod, or armv8.6-a).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <isogloss/kernel/bf16.hpp>
#include <isogloss/types.hpp>
#include <utility>

#ifdef __aarch64__
#include <arm_neon.h>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace kernel {

#ifdef __ARM_FEATURE_BF16_VECTOR_ARITHMETIC
/// The micro-kernel for BFMMLA: two rows by two columns, four terms each.
struct BfmmlaMicro {
    static constexpr bool any_size = false;
    void multiply(const Bf16Block& block) const {
        const Index parts = (block.rows + most - 1) / most, height = (block.rows + parts - 1) / parts;
        for (Index p = 0; p < block.row_panels(); ++p)
            for (Index r = 0; r < block.rows; r += height)
                for (Index j = 0; j < block.column_panels() * Bf16Tiles::columns; j += columns)
                    of_height(block, {p, r, std::min(height, block.rows - r), j}, Heights());
    }

private:
    static constexpr int pairs = 4,
                         columns = 2 * pairs;  // 6 by 4 pairs: 24 sums, which leaves registers for A and B
    static constexpr Index most = 12;          // rows
    using Heights = std::make_index_sequence<most / 2>;

    struct Part {
        Index panel, first, rows, column;  // rows of a panel of A, 8 columns
    };
    template <std::size_t... r>
    static void of_height(const Bf16Block& block, const Part& part, std::index_sequence<r...>) {
        static_cast<void>((((part.rows + 1) / 2 == Index{r + 1} &&
                            (rows<r + 1>(block, part, std::make_index_sequence<(r + 1) * pairs>()), true)) ||
                           ...));
    }

    // Constant indices keep the sums in registers. Where the rows are odd, the last one is its own neighbour.
    template <std::size_t R, std::size_t... s>
    static void rows(const Bf16Block& block, const Part& part, std::index_sequence<s...>) {
        constexpr Index depth = Bf16Tiles::depth;
        const auto row = [&](std::size_t r) { return std::min(static_cast<Index>(r), part.rows - 1); };
        const auto at = [&](auto* data, Index stride, std::size_t r, std::size_t v) {
            return data + (part.panel * block.rows + part.first + row(r)) * stride + part.column +
                   2 * static_cast<Index>(v);
        };
        const float* const start = block.start;
        float32x4_t sum[] = {
            (start ? vcombine_f32(vld1_f32(at(start, block.start_stride, s / pairs * 2, s % pairs)),
                                  vld1_f32(at(start, block.start_stride, s / pairs * 2 + 1, s % pairs)))
                   : vdupq_n_f32(0))...};
        const Bf16* a = block.a + part.panel * block.a_panel + part.first * depth;
        const Bf16* b =
            block.b + part.column / Bf16Tiles::columns * block.b_panel + part.column % Bf16Tiles::columns * 2;
        // The last tile only as far as it has terms.
        for (Index left = block.terms; left > 0; left -= depth, a += block.rows * depth)
            for (Index i = 0; i < depth; i += 8, b += 8 * Bf16Tiles::columns) {
                if (i >= left) continue;
                uint64x2_t x[2 * R];
#pragma GCC unroll 12
                for (std::size_t r = 0; r < 2 * R; ++r)
                    x[r] = vreinterpretq_u64_u16(load(a + row(r) * depth + i));
                const auto add = [&](const Bf16* four, auto half) {
                    // Two terms of four columns, and the next two: four terms of two columns.
                    const uint32x4_t u = load_pairs(four), v = load_pairs(four + 8),
                                     w = load_pairs(four + 2 * Bf16Tiles::columns),
                                     z = load_pairs(four + 2 * Bf16Tiles::columns + 8);
                    const uint32x4_t right[] = {vzip1q_u32(u, w), vzip2q_u32(u, w), vzip1q_u32(v, z),
                                                vzip2q_u32(v, z)};
                    ((sum[s] = vbfmmlaq_f32(
                          sum[s], vreinterpretq_bf16_u64(half(x[s / pairs * 2], x[s / pairs * 2 + 1])),
                          vreinterpretq_bf16_u32(right[s % pairs]))),
                     ...);
                };
                add(b, [](uint64x2_t above, uint64x2_t below) { return vzip1q_u64(above, below); });
                add(b + 4 * Bf16Tiles::columns,
                    [](uint64x2_t above, uint64x2_t below) { return vzip2q_u64(above, below); });
            }
        (vst1_f32(at(block.c, block.c_stride, s / pairs * 2, s % pairs), vget_low_f32(sum[s])), ...);
        ((Index{s / pairs * 2 + 1} < part.rows
              ? vst1_f32(at(block.c, block.c_stride, s / pairs * 2 + 1, s % pairs), vget_high_f32(sum[s]))
              : void()),
         ...);
    }
    static uint16x8_t load(const Bf16* from) { return vld1q_u16(&from->bits); }
    static uint32x4_t load_pairs(const Bf16* from) { return vreinterpretq_u32_u16(load(from)); }
};
#endif

#ifdef __ARM_FEATURE_DOTPROD
/// sum [rows, 32] = Σ_k p_rk (q_kj + 128) by SDOT, for a row block and a panel of Int8Micro; offset is 128 Σ_k p_rk.
template <int rows> void add_up_int8(const std::int8_t* p, const std::uint8_t* q, Index groups,
                                     const std::int32_t* offset, std::int32_t* sum) {
    constexpr Index columns = 32, vectors = 4;  // 16 columns at a time, and up to 5 rows: 20 sums
    constexpr int parts = (rows + 4) / 5, height = (rows + parts - 1) / parts;
    const auto part = [&]<std::size_t... s>(Index first, Index column, std::index_sequence<s...>) {
        int32x4_t sums[] = {vdupq_n_s32(offset[first + static_cast<Index>(s / vectors)])...};
        const std::int8_t* a = p + first * 4;
        const std::uint8_t* b = q + column * 4;
        for (Index g = 0; g < groups; ++g, a += rows * 4, b += columns * 4) {
            const auto right = [b](Index v) {
                return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(b + 16 * v), vdupq_n_u8(128)));
            };
            const int8x16_t x[] = {right(0), right(1), right(2), right(3)};
            const auto left = [a](Index r) {
                std::int32_t four;
                std::memcpy(&four, a + 4 * r, sizeof four);
                return vreinterpretq_s8_s32(vdupq_n_s32(four));
            };
            ((sums[s] = vdotq_s32(sums[s], x[s % vectors], left(static_cast<Index>(s / vectors)))), ...);
        }
        (vst1q_s32(sum + (first + static_cast<Index>(s / vectors)) * columns + column +
                       4 * static_cast<Index>(s % vectors),
                   sums[s]),
         ...);
    };
    for (const Index column : {0, 16}) {
        int r = 0;
        for (; r + height <= rows; r += height)
            part(r, column, std::make_index_sequence<std::size_t{height * vectors}>());
        if constexpr (rows % height != 0)
            part(r, column, std::make_index_sequence<std::size_t{rows % height * vectors}>());
    }
}
#endif

}}}  // namespace isogloss::kernel
#endif
