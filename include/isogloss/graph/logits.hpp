/// @file graph/logits.hpp  The logits of a head, wherever they are wanted.
#pragma once

#include <algorithm>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/linalg.hpp>

namespace isogloss::inline ISOGLOSS_CONFIGURATION::graph {

/// Z = H Eᵀ + b for H [rows, n], the head's table E [V, n], a bias b [V] or null, and Z [rows, V].
///
/// The last `without_bias` rows take none. `packed` is memory for H packed (kernel::SkinnyGemm::size): with it a
/// few rows pass by the table where it lies; without it, and in bfloat16, the product is that of product(). `ready` is Eᵀ
/// packed beforehand, or null: with it the product is that of PackedMatrix.
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

/// The table of a head packed for products in bfloat16, once a pass for all blocks of logits. Without memory, which is
/// so in full precision, for double, and where it would take more than 5/8 of the budget, it does nothing.
template <class T> class PackedTable {
public:
    /// Bytes of memory for a table [V, n]; 0: it is not to be packed.
    static Index bytes(Precision precision, Index V, Index n, Index budget) {
        if (precision != Precision::bf16 || !PackedMatrix<T>::serves(precision, n)) return 0;
        const Index needed = kernel::Bf16Tiles::size_b(n, V) * Index{sizeof(kernel::Bf16)};
        return needed <= budget / 8 * 5 ? needed : 0;
    }
    /// `memory` is an array of so many bytes, null where there are none.
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
