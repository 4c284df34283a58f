// Compiled by tests/meta.cmake for instruction sets for which the kernels have code of their own, whether this machine
// has them or not, and never run. All headers of kernel/ are included before this file. REQUIRED is a macro by which
// the compiler says that it compiles for the instruction set.

#include <isogloss/linalg.hpp>

#if !REQUIRED
#error "the compiler does not define the macro REQUIRED: it compiles for another instruction set"
#endif
#if defined(__AVX512FP16__) && defined(__linux__) && !defined(ISOGLOSS_DETAIL_AMX)
#error "the products for AMX are not compiled for Sapphire Rapids"
#endif

using namespace isogloss;
using kernel::Bf16;

// Calls, since what is not called is not compiled to instructions, and only these are checked against the
// instruction set.

template <class T> void products(MatrixRef<const T> a, MatrixRef<const T> b, MatrixRef<T> c, T* packed) {
    product<T>(fastest_precision<T>(), a, b, T(0), c);
    using Skinny = kernel::SkinnyGemm<T>;
    Skinny::product(a, b, T(1), c);
    Skinny::pack_left(a, packed);
    Skinny::product_transposed(packed, b, T(0), c);
    kernel::Packed<T>::pack(b, packed);
    kernel::Packed<T>::add_product(a, packed, c);
}
template void products(MatrixRef<const float>, MatrixRef<const float>, MatrixRef<float>, float*);
template void products(MatrixRef<const double>, MatrixRef<const double>, MatrixRef<double>, double*);

void rounded_products(MatrixRef<const float> a, MatrixRef<const float> b, MatrixRef<float> c, Bf16* memory,
                      Bf16* packed, std::byte* bytes, std::uint8_t* integers, float* scale) {
    using kernel::Bf16Gemm, kernel::Int8Gemm;
    Bf16Gemm::product(a, b, 0.f, c, memory);
    kernel::Bf16Tiles::pack_b(b, packed);
    Bf16Gemm::product(a, packed, scale, 0, c, memory);
    Int8Gemm::pack(b, integers, scale);
    Int8Gemm::product(a, integers, scale, scale, 0, c, bytes);
}

// The loops over rows, which have vectors of their own.
template <class T> double rows(Index n, T* z, T* other, Token* column) {
    double cross = kernel::softmax(n, z) + kernel::log_softmax(n, z, T(2)) + kernel::cross_entropy(n, z, 0);
    cross += kernel::exp_two_temperatures(n, z, T(0), T(1), other, other).sum;
    cross += kernel::exp_sum_and_cross(n, z, T(0), T(1), cross) + kernel::sum_of_squares(n, z);
    const auto kept = kernel::sample(n, z, T(1), 0.5, n, column, other).kept;
    kernel::add_weighted_rows(n, kept, column, other, z, n, other);
    kernel::activate(Activation::logistic, n, z, other);
    const kernel::LstmRows<T> lstm{z, other, z, z, z};
    kernel::lstm_forward(1, n, lstm);
    kernel::lstm_backward<false>(1, n, lstm, kernel::LstmAdjoints<T>{other, z, z});
    const kernel::GruRows<T> gru{z, other, z, z, z};
    kernel::gru_gates_forward(1, n, gru);
    kernel::gru_state_forward(1, n, gru);
    const kernel::HighwayRows<T> highway{z, other, z};
    kernel::highway_forward(1, n, highway);
    kernel::mogrify_forward(1, n, kernel::MogrifyRows<T>{z, other, z});
    return cross + static_cast<double>(kernel::first_non_finite(n, z));
}
template double rows(Index, float*, float*, Token*);
template double rows(Index, double*, double*, Token*);
