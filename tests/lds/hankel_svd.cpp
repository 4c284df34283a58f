#include <isogloss/lds/hankel_svd.hpp>
#include <limits>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;

namespace {

// H column by column.
SmallMatrix as_matrix(const HankelOperator<double>& H) {
    SmallMatrix out, I = dense::identity(H.size());
    H.apply(I, out);
    return out;
}

}  // namespace

TEST_CASE("The Hankel operator has Ψ_{r-j+i} in block (i, j), and its transpose is its transpose",
          "[lds][hankel]") {
    LagCounts counts(9, {.lags = 5});
    counts.add(texts::markov(3000, 9));
    const LagMoments<double> psi(counts, {.pseudo_counts = 1});
    const HankelOperator<double> H(psi, 3);
    const SmallMatrix D = as_matrix(H), I = dense::identity(27);
    for (Index i = 0; i < 3; ++i)
        for (Index j = 0; j < 3; ++j) {
            SmallMatrix block = zeros<double>(9, 9), part = block, unit = dense::identity(9);
            psi.apply(3 - j + i, ref(unit), ref(part));
            for (Index a = 0; a < 9; ++a)
                for (Index b = 0; b < 9; ++b)
                    block.data()[a * 9 + b] = D.data()[(i * 9 + a) * 27 + j * 9 + b];
            CHECK(difference(part, block) < 1e-13);
        }
    SmallMatrix back;
    H.apply_transposed(I, back);
    CHECK(difference(back, transposed(D)) < 1e-12);
}

TEMPLATE_TEST_CASE("The randomised SVD finds the leading singular vectors, and bounds its error",
                   "[lds][hankel]", float, double) {
    const double tolerance = sizeof(TestType) == 4 ? 1e-4 : 1e-8;
    LagCounts counts(30, {.lags = 3});
    counts.add(texts::markov(20000, 30));
    const LagMoments<TestType> psi(counts, {.pseudo_counts = 1});
    const LagMoments<double> psi_double(counts, {.pseudo_counts = 1});
    const SmallMatrix D = as_matrix(HankelOperator<double>(psi_double, 2));
    const auto exact = thin_svd<double>(D, "test");
    const auto found =
        hankel_svd(HankelOperator<TestType>(psi, 2), 2, {.oversampling = 8, .power_iterations = 6});
    for (std::size_t i = 0; i < 2; ++i) CHECK(found.s[i] == Approx(exact.s(i)).epsilon(tolerance));
    // U diag(s) Vᵀ is the best approximation of rank 2
    SmallMatrix best = zeros<double>(60, 60), got = best;
    for (std::size_t i = 0; i < 60; ++i)
        for (std::size_t j = 0; j < 60; ++j)
            for (std::size_t k = 0; k < 2; ++k) {
                best(i, j) += exact.U(i, k) * exact.s(k) * exact.V(j, k);
                got(i, j) += double(found.U(i, k)) * found.s[k] * double(found.V(j, k));
            }
    CHECK(difference(got, best) < tolerance);
    CHECK(found.error_bound > exact.s(10));
    CHECK(found.error_bound < 5 * exact.s(10));
}

TEMPLATE_TEST_CASE("Where nothing is left out the bound is of the size of rounding, and not below it",
                   "[lds][hankel]", float, double) {
    const double epsilon = std::numeric_limits<TestType>::epsilon();
    LagCounts counts(3, {.lags = 3});
    counts.add(texts::markov(3000, 3));
    const LagMoments<TestType> psi(counts, {.pseudo_counts = 0});
    const auto found = hankel_svd(HankelOperator<TestType>(psi, 2), 4);
    CHECK(found.error_bound > 1e-3 * epsilon);
    CHECK(found.error_bound < 1e3 * epsilon);
}

TEST_CASE("What has no Hankel operator, or no such rank, is refused", "[lds][hankel]") {
    LagCounts counts(3, {.lags = 3});
    counts.add(texts::markov(3000, 3));
    const LagMoments<double> psi(counts, {.pseudo_counts = 0});
    REQUIRE_THROWS_MATCHES(HankelOperator<double>(psi, 1), UsageError, says("found 1 lags", "at least 2"));
    REQUIRE_THROWS_MATCHES(HankelOperator<double>(psi, 3), UsageError,
                           says("moments of 3", "twice as many less 1"));
    const HankelOperator<double> H(psi, 2);
    REQUIRE_THROWS_MATCHES(hankel_svd(H, 5), UsageError, says("5 states", "at most 4, the rank"));
    REQUIRE_THROWS_MATCHES(hankel_svd(H, 0), UsageError, says("rank = 0"));
    constexpr Index most = std::numeric_limits<Index>::max();
    REQUIRE_THROWS_MATCHES(HankelOperator<double>(psi, most), UsageError, says("moments of 3"));
    REQUIRE_THROWS_MATCHES(hankel_svd(H, most), UsageError, says("at most 6, the rank"));
    CHECK(hankel_svd(H, 2, {.oversampling = most}).s.size() == 2);
}

TEST_CASE("Where H has fewer directions than columns were asked for, an SVD goes on from every state",
          "[lds][hankel]") {
    LagCounts counts(3, {.lags = 3});
    counts.add(texts::markov(3000, 3));
    const LagMoments<double> psi(counts, {.pseudo_counts = 0});
    const HankelOperator<double> H(psi, 2);  // rank 4
    std::vector<SvdState<double>> states;
    const SvdCheckpoint<double> keep = [&](Index products, const TallMatrix<double>& block) {
        states.push_back({products, block});
    };
    const auto whole = hankel_svd(H, 2, {}, {}, keep);
    REQUIRE(cols(states.back().block) == 4);
    for (const auto& state : states) CHECK(hankel_svd(H, 2, {}, state).s == whole.s);
    SvdState<double> wide{1, zeros<double>(6, 7)};
    REQUIRE_THROWS_MATCHES(hankel_svd(H, 2, {}, wide), UsageError,
                           says("[6, 7]", "expected [6, 6] or fewer"));
}
