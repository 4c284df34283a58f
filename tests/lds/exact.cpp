
#include "catch.hpp"
#include "lds/texts.hpp"
#include "reference/lds_exact.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;
using texts::difference;
using texts::tensor;
namespace r = reference::lds;

TEMPLATE_TEST_CASE("Exact filter and smoother equal conditioning in one joint Gaussian", "[lds][exact]",
                   float, double) {
    const double tolerance = sizeof(TestType) == 4 ? 1e-5 : 1e-12;
    const auto s = texts::recorded<TestType>();
    const auto e = reference::exact_smoother<TestType>(s, texts::recorded_text());
    CHECK(difference(e.filtered, tensor<double>(r::filtered, 8, 2)) < tolerance);
    CHECK(difference(e.smoothed, tensor<double>(r::smoothed, 8, 2)) < tolerance);
    for (Index t = 0; t < 8; ++t) {
        CHECK(difference(e.filtered_covariance[std::size_t(t)],
                         tensor<double>(r::filtered_cov + 4 * t, 2, 2)) < tolerance);
        CHECK(difference(e.smoothed_covariance[std::size_t(t)],
                         tensor<double>(r::smoothed_cov + 4 * t, 2, 2)) < tolerance);
    }
    CHECK(difference(e.statistics.xx, tensor<double>(r::xx, 2, 2)) < tolerance);
    CHECK(difference(e.statistics.xx_1, tensor<double>(r::xx_1, 2, 2)) < tolerance);
    CHECK(difference(e.statistics.yx, tensor<TestType>(r::yx, 6, 2)) < tolerance);
    CHECK(e.statistics.log_likelihood == Approx(r::log_likelihood[0]).epsilon(tolerance));
}

TEST_CASE("Exact EM never lowers the likelihood", "[lds][exact][em]") {
    const auto text = texts::markov(400, 9);
    LagCounts counts(9, {.lags = 1});
    counts.add(text);
    Lds<double> s;
    s.whitening = Whitening(counts.occurrences(), {.pseudo_counts = 0});
    s.A = {{0.5, 0.1}, {-0.1, 0.4}};
    s.C = zeros<double>(9, 2);
    const Random random(5, 1);
    for (std::size_t i = 0; i < s.C.size(); ++i) s.C.data()[i] = 0.1 * random.normal(Index(i));
    project_out<double>(s.whitening.m, ref(s.C));
    s.M = lyapunov(s.A, dense::identity(2));
    repair_noise(inner_products(s.C, s.C), s.M);
    double before = reference::exact_em_step<double>(s, text);
    const double first = before;
    for (int i = 0; i < 40; ++i) {
        const double now = reference::exact_em_step<double>(s, text);
        CHECK(now >= before - 1e-12);
        before = now;
    }
    CHECK(before > first + 0.01);
}
