#include "reference/kronecker.hpp"

#include <isogloss/random.hpp>
#include <vector>

#include "catch.hpp"
#include "graphs.hpp"

using namespace isogloss;
using namespace kronecker;

namespace {

Matrix random_matrix(Index r, Index c, std::uint64_t seed) {
    const Random random(seed, 5);
    return matrix(r, c, [&](Index i, Index j) { return 2 * random.uniform(i * c + j) - 1; });
}
double distance(const Matrix& a, const Matrix& b) {
    REQUIRE(a.shape() == b.shape());
    return apart(flat(a), flat(b));
}
Matrix vec(const Matrix& a) {
    return matrix(rows(a) * cols(a), 1, [&](Index i, Index) { return a(i % rows(a), i / rows(a)); });
}
double trace_of_product(const Matrix& a, const Matrix& b) {  // tr(Aᵀ B)
    double sum = 0;
    for (Index i = 0; i < rows(a); ++i)
        for (Index j = 0; j < cols(a); ++j) sum += a(i, j) * b(i, j);
    return sum;
}

}  // namespace

TEST_CASE("The commutation matrix turns vec(A) into vec of the transpose", "[closed_form][kronecker]") {
    const Matrix a = random_matrix(3, 5, 1);
    REQUIRE(distance(product(commutation(3, 5), vec(a)), vec(transposed(a))) == 0);
    REQUIRE(distance(product(commutation(3, 5), commutation(5, 3)), kronecker::identity(15)) == 0);
    const Matrix two = kronecker::kronecker(matrix(1, 2, [](Index, Index j) { return double(j + 1); }), a);
    REQUIRE(rows(two) == 3);
    REQUIRE(cols(two) == 10);
    REQUIRE(two(2, 9) == 2 * a(2, 4));
}

TEST_CASE("The facts on the vec-transpose that the derivation uses", "[closed_form][kronecker]") {
    const Index p = 3, M = 4, H = 2, V = 5;
    const Matrix A = random_matrix(p * 4, 5, 2), B = random_matrix(p * 4, 5, 3), C = random_matrix(5, 6, 4);
    const auto k = [](const Matrix& a, const Matrix& b) { return kronecker::kronecker(a, b); };
    const Matrix I = kronecker::identity(p), E = random_matrix(7, 4, 5);
    REQUIRE(distance(vec_transpose(vec_transpose(A, p), p), A) == 0);
    REQUIRE(distance(vec_transpose(product(k(E, I), A), p), product(vec_transpose(A, p), transposed(E))) <
            1e-15);
    REQUIRE(distance(vec_transpose(product(A, C), p), product(k(transposed(C), I), vec_transpose(A, p))) <
            1e-15);
    REQUIRE(trace_of_product(A, B) ==
            Approx(trace_of_product(vec_transpose(A, p), vec_transpose(B, p))).epsilon(1e-14));
    const Matrix table = random_matrix(V, H, 6), IM = kronecker::identity(M);
    REQUIRE(distance(k(IM, table), product(product(commutation(M, V), k(table, IM)), commutation(H, M))) ==
            0);
}

TEST_CASE("The gradient in matrix form equals central differences", "[closed_form][kronecker]") {
    const Index V = 5, H = 3, M = 4, C = 6, N = 7;
    const std::vector<Token> X = {0, 1, 2, 3, 4, 4, 4, 4, 1, 1, 0, 0, 2, 3,
                                  2, 3, 0, 0, 0, 0, 3, 1, 4, 1, 2, 2, 0, 4},
                             y = {0, 5, 1, 2, 3, 4, 5};
    REQUIRE(X.size() == std::size_t(N * M));
    Matrix E = random_matrix(V, H, 7), W = random_matrix(M * H, C, 8);
    const Result r = kronecker::value_and_gradient(E, W, X, y);
    const auto differences = [&](Matrix& m) {
        Matrix d = m;
        for (std::size_t i = 0; i < m.size(); ++i) {
            const double step = 1e-5, before = m.data()[i];
            m.data()[i] = before + step;
            const double up = kronecker::value_and_gradient(E, W, X, y).value;
            m.data()[i] = before - step;
            d.data()[i] = (up - kronecker::value_and_gradient(E, W, X, y).value) / (2 * step);
            m.data()[i] = before;
        }
        return d;
    };
    REQUIRE(distance(r.d_E, differences(E)) < 1e-9);
    REQUIRE(distance(r.d_W, differences(W)) < 1e-9);
    REQUIRE(r.value > 1);
}

TEST_CASE("As it is printed, the formula's last product is not defined", "[closed_form][kronecker]") {
    // Vec-transpose first, transpose after: [H, M² V] meets [M² H, H] transposed.
    const Index V = 5, H = 3, M = 4;
    const Matrix x = matrix(M * V, 1, [](Index i, Index) { return i == 0 ? 1.0 : 0.0; });
    const Matrix bracket = product(product(random_matrix(M * H, 1, 9), transposed(x)), commutation(M, V));
    const Matrix left = transposed(vec_transpose(commutation(H, M), M));
    REQUIRE_THROWS_AS(product(left, transposed(vec_transpose(bracket, M))), UsageError);
    REQUIRE(rows(product(left, vec_transpose(transposed(bracket), M))) == H);
}
