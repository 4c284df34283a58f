// Says whether BLAS and LAPACK answer as they should: a product and a QR factorisation.
#include <cmath>
#include <iostream>

#if __has_include(<xtensor/containers/xtensor.hpp>)
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xtensor.hpp>
#endif
#include <xtensor-blas/xblas.hpp>
#include <xtensor-blas/xlinalg.hpp>

using Matrix = xt::xtensor<double, 2>;

int main() {
    const Matrix a = {{1, 2}, {3, 4}, {5, 6}}, b = {{1, -1, 2}, {0, 3, 1}};
    Matrix c = xt::zeros<double>({3, 3});
    xt::blas::gemm(a, b, c);
    if (c(0, 0) != 1 || c(2, 1) != 13 || c(1, 2) != 10) {
        std::cerr << "gemm gives a wrong product\n";
        return 1;
    }
    const auto [q, r] = xt::linalg::qr(a);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
            const double sum = q(i, 0) * r(0, j) + q(i, 1) * r(1, j);
            if (!(std::abs(sum - a(i, j)) < 1e-12)) {
                std::cerr << "QR does not give back its matrix\n";
                return 2;
            }
        }
}
