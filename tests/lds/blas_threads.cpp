// What the host program has set for BLAS changes no bit of a system, its states or its likelihood.
#include <isogloss/lds.hpp>
#include <isogloss/threads.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;
using namespace isogloss::lds;

namespace {

using Results = std::vector<std::pair<std::string, std::vector<double>>>;

// Sizes at which OpenBLAS shares products and factorisations among its threads, where it may.
template <class T> Results results() {
    constexpr Index V = 300, h = 60;
    Results out;
    const auto keep = [&](const char* name, const auto& m) {
        out.emplace_back(name, std::vector<double>(m.data(), m.data() + m.size()));
    };
    const auto keep_number = [&](const char* name, double x) { out.emplace_back(name, std::vector{x}); };
    const Random random(2, 1);
    Lds<T> s;
    s.whitening = Whitening::of_frequencies(std::vector<double>(std::size_t(V), 1.0 / double(V)), 1);
    s.A = zeros<double>(h, h);
    for (std::size_t i = 0; i < s.A.size(); ++i)
        s.A.data()[i] = 0.3 / std::sqrt(double(h)) * random.normal(Index(i));
    s.C = zeros<T>(V, h);
    for (std::size_t i = 0; i < s.C.size(); ++i)
        s.C.data()[i] = T(0.5 / std::sqrt(double(V)) * random.normal(Index(i) + 100000));
    project_out<T>(s.whitening.m, ref(s.C));
    s.M = identity(h);
    repair_noise(identity(h), s.M);

    const auto k = steady_state(s);
    keep("steady_state", k.predicted), keep("gain", k.L), keep("smoother", k.J);
    const TextFilter<T> f(s, k);
    const auto text = texts::markov(60, V);
    keep("table", f.table()), keep("filter", f.filter(text)), keep("smooth", f.smooth(text));
    std::vector<T> state(std::size_t(h), T(0));
    for (const Token token : text) f.step(token, state);
    out.emplace_back("step", std::vector<double>(state.begin(), state.end()));
    keep_number("log_likelihood", f.log_likelihood(text)),
        keep_number("cross_entropy", f.cross_entropy(text));

    LagCounts counts(V, {.lags = 3});
    counts.add(texts::markov(1000, V));
    const LagMoments<T> psi(counts, {.pseudo_counts = 1});
    auto found =
        subspace_identification(psi, {.states = h / 2, .lags = 2, .svd = {.power_iterations = 1}}).system;
    keep("subspace_identification", found.A), keep("subspace_identification", found.C);
    const auto steady = steady_state(found);
    const auto averages = asos_statistics(found, steady, psi, 3);
    keep("asos_statistics", averages.xx), keep("asos_statistics", averages.yx);
    keep("type_embedding", type_embedding(found, averages.xx));
    keep("TokenEmbedding", TokenEmbedding<T>(found, steady, averages, TokenStates::smoother)(text));
    maximise(averages, found);
    keep("maximise", found.A), keep("maximise", found.C);
    return out;
}

}  // namespace

TEMPLATE_TEST_CASE("The host's number of threads of BLAS changes no bit, and is restored", "[lds][threads]",
                   float, double) {
    if (!openblas_set_num_threads) {
        WARN("this BLAS has no openblas_set_num_threads");
        return;
    }
    const int host = openblas_get_num_threads();
    openblas_set_num_threads(1);
    const auto expected = results<TestType>();
    for (const int n : {2, 4}) {
        openblas_set_num_threads(n);
        const auto found = results<TestType>();
        CHECK(openblas_get_num_threads() == n);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            INFO(found[i].first << " with " << n << " threads");
            CHECK((found[i].second == expected[i].second));
        }
    }
    openblas_set_num_threads(host);
}
