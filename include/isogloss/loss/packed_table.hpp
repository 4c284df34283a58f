/// @file loss/packed_table.hpp  The table of a head, packed once per pass for the logits of all its blocks.
#pragma once

#include <isogloss/graph/logits.hpp>
#include <isogloss/graph/setup.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {

/// The table of a head packed once per pass for all blocks of logits, in bfloat16, or in T where blocks have few rows,
/// for which BLAS would pack it again and again. Without memory (where it would take more than 5/8 of the budget, a second
/// table of the loss included) it does nothing.
template <class T> class PackedTable {
public:
    /// Bytes of memory for a table [V, n]; 0: it cannot be packed within this budget.
    static Index bytes(Precision precision, Index V, Index n, Index budget) {
        if (!graph::PackedMatrix<T>::serves(precision, n)) return 0;
        const Index needed = precision == Precision::bf16
                                 ? kernel::Bf16Tiles::size_b(n, V) * Index{sizeof(kernel::Bf16)}
                                 : kernel::Packed<T>::size(n, V) * Index{sizeof(T)};
        return needed <= budget / 8 * 5 ? needed : 0;
    }
    /// Whether packing pays for passes of up to `positions` positions in blocks of up to `rows`, with `states` rows in
    /// their products: in bfloat16 unless little memory is left for blocks, in T with AVX2 for blocks of few rows.
    static bool pays(Precision precision, Index rows, Index states, Index positions) {
        if (precision == Precision::bf16) return rows >= std::min<Index>(positions, 8);
        return sizeof(kernel::Lanes<T>) == 32 && positions >= worth_packing && rows >= least_rows &&
               states <= most_states;
    }
    /// Takes `bytes` of memory, as many as bytes() says.
    void setup(Setup<T>& s, Index bytes) {
        if (bytes == 0) return;
        if (s.precision() == Precision::bf16)
            halves_ = s.template scratch<kernel::Bf16>(bytes / Index{sizeof(kernel::Bf16)});
        else numbers_ = s.scratch(bytes / Index{sizeof(T)});
    }

    /// Packs E [V, n] for a pass of `positions` rows of logits, if there is memory for this precision and packing pays.
    void pack(MatrixRef<const T> E, Precision precision, Index positions) {
        is_packed_ =
            precision == Precision::bf16 ? halves_ != nullptr : numbers_ && positions >= worth_packing;
        if (!is_packed_) return;
        in_halves_ = precision == Precision::bf16;
        if constexpr (std::is_same_v<T, float>)
            if (in_halves_) {
                using Tiles = kernel::Bf16Tiles;
                return parallel(E.rows, 2 * Tiles::columns, E.rows, [&](Index first, Index last, Index) {
                    Tiles::pack_b(t(E.rows_from(first, last - first)),
                                  halves_ + Tiles::size_b(E.cols, first));
                });
            }
        kernel::Packed<T>::pack(t(E), numbers_);
    }
    /// Whether pack() has packed.
    bool is_packed() const { return is_packed_; }

    /// Z = H Eᵀ + b, the last `without_bias` rows without b; b may be null.
    void logits(MatrixRef<const T> H, const T* b, MatrixRef<T> Z, Index without_bias) const {
        if constexpr (std::is_same_v<T, float>)
            if (in_halves_) {
                kernel::Bf16* const memory = detail::bf16_memory(1);
                const Index rows = Z.rows - without_bias;
                kernel::Bf16Gemm::product(H.rows_from(0, rows), halves_, b, Z.rows_from(0, rows), memory);
                return kernel::Bf16Gemm::product(H.rows_from(rows, without_bias), halves_, nullptr,
                                                 Z.rows_from(rows, without_bias), memory);
            }
        kernel::Packed<T>::product(H, numbers_, b, without_bias, Z);
    }

private:
    // Measured: positions from which packing takes less time than it saves, rows from which a block is no thinner for
    // the memory taken, and rows of products beyond which BLAS is as fast.
    static constexpr Index worth_packing = 128, least_rows = 32, most_states = 384;

    T* numbers_ = nullptr;
    kernel::Bf16* halves_ = nullptr;
    bool is_packed_ = false, in_halves_ = false;
};

}}  // namespace isogloss
