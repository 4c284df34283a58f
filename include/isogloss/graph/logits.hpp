/// @file graph/logits.hpp  The logits of a head, wherever they are needed.
#pragma once

#include <algorithm>
#include <isogloss/graph/packed_matrix.hpp>
#include <isogloss/linalg.hpp>

namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION { namespace graph {

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
    if (ready) return ready->product(H, b, Z, without_bias);
    for (Index r = 0; b && r < rows; ++r)
        if (r < rows - without_bias) std::copy_n(b, V, Z.row(r));
        else std::fill_n(Z.row(r), V, T(0));
    const T beta = b ? T(1) : T(0);
    if (!packed || !Skinny::Micro::wide || portable() || rows < 2 || rows > Skinny::most_transposed(H.cols) ||
        precision != Precision::full)
        return product<T>(precision, H, t(E), beta, Z);
    Skinny::pack_left(H, packed);
    parallel(V, 16, V, [&](Index first, Index last, Index) {
        Skinny::product_transposed(packed, E.rows_from(first, last - first), beta,
                                   Z.columns(first, last - first));
    });
}

}}}  // namespace isogloss::graph
