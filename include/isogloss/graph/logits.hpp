/// @file graph/logits.hpp  The logits of a head, wherever they are needed.
#pragma once

#include <algorithm>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/linalg.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::graph {

/// Z = H Eᵀ + b for H [rows, n], the head's table E [V, n], a bias b [V] or null, and Z [rows, V].
///
/// The last `without_bias` rows have no bias. `packed` is memory for H packed (kernel::SkinnyGemm::size): with it
/// few rows are multiplied by the table in place; without it, and in bfloat16, product() is used. `ready` is Eᵀ
/// packed in advance, or null: with it PackedMatrix is used.
template <class T> void logits(MatrixRef<const T> H, MatrixRef<const T> E, const T* b, MatrixRef<T> Z,
                               T* packed = nullptr, Index without_bias = 0,
                               Precision precision = Precision::full,
                               const PackedMatrix<T>* ready = nullptr) {
    using Skinny = kernel::SkinnyGemm<T>;
    const Index rows = Z.rows, V = Z.cols;
    if (ready) {
        const Index biased = rows - without_bias;
        ready->product(H.rows_from(0, biased), b, Z.rows_from(0, biased));
        return ready->product(H.rows_from(biased, without_bias), nullptr, Z.rows_from(biased, without_bias));
    }
    for (Index r = 0; b && r < rows; ++r)
        if (r < rows - without_bias) std::copy_n(b, V, Z.row(r));
        else std::fill_n(Z.row(r), V, T(0));
    const T beta = b ? T(1) : T(0);
    if (!packed || !Skinny::Micro::wide || rows < 2 || rows > Skinny::most_transposed ||
        precision != Precision::full)
        return product<T>(precision, H, t(E), beta, Z);
    Skinny::pack_left(H, packed);
    parallel(V, 16, V, [&](Index first, Index last, Index) {
        Skinny::product_transposed(packed, E.rows_from(first, last - first), beta,
                                   Z.columns(first, last - first));
    });
}

/// The table of a head packed for products in bfloat16, once per pass for all blocks of logits. Without memory (in
/// full precision, for double, or where it would take more than 5/8 of the budget) it does nothing.
template <class T> class PackedTable {
public:
    /// Bytes of memory for a table [V, n]; 0: do not pack it.
    static Index bytes(Precision precision, Index V, Index n, Index budget) {
        if (precision != Precision::bf16 || !PackedMatrix<T>::serves(precision, n)) return 0;
        const Index needed = kernel::Bf16Tiles::size_b(n, V) * Index{sizeof(kernel::Bf16)};
        return needed <= budget / 8 * 5 ? needed : 0;
    }
    /// `memory` is an array of that many bytes, or null if 0.
    void setup(kernel::Bf16* memory) { packed_ = memory; }

    /// Packs E [V, n] if the pass is in bfloat16.
    void pack(MatrixRef<const T> E, Precision precision) {
        using Tiles = kernel::Bf16Tiles;
        is_packed_ = packed_ && precision == Precision::bf16;
        if constexpr (std::is_same_v<T, float>)
            if (is_packed_)
                parallel(E.rows, 2 * Tiles::columns, E.rows, [&](Index first, Index last, Index) {
                    Tiles::pack_b(t(E.rows_from(first, last - first)),
                                  packed_ + Tiles::size_b(E.cols, first));
                });
    }
    /// Whether pack() has packed.
    bool is_packed() const { return is_packed_; }

    /// Z = H Eᵀ + b, the last `without_bias` rows without b; b may be null.
    void logits(MatrixRef<const T> H, const T* b, MatrixRef<T> Z, Index without_bias) const {
        if constexpr (std::is_same_v<T, float>) {
            kernel::Bf16* const memory = detail::bf16_memory(1);
            const Index rows = Z.rows - without_bias;
            kernel::Bf16Gemm::product(H.rows_from(0, rows), packed_, b, Z.rows_from(0, rows), memory);
            kernel::Bf16Gemm::product(H.rows_from(rows, without_bias), packed_, nullptr,
                                      Z.rows_from(rows, without_bias), memory);
        }
    }

private:
    kernel::Bf16* packed_ = nullptr;
    bool is_packed_ = false;
};

}  // namespace isogloss::inline ISOGLOSS_CONFIGURATION::graph
