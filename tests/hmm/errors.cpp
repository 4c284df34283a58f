// What hidden Markov models refuse, and how they name the cause.
#include <isogloss/hmm/hmm.hpp>
#include <limits>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A model that was given numbers of another size refuses them by name", "[hmm][errors]") {
    const std::vector<Token> x = {0, 1, 0};
    for (const char* which : {"initial", "transition", "emission"}) {
        hmm::Hmm m({.states = 3, .symbols = 2});
        (which[0] == 'i' ? m.initial : which[0] == 't' ? m.transition : m.emission) = {1, 0, 0, 1};
        const auto refused = says("hmm: found 4 numbers in `" + std::string(which) + "`", "expected ");
        REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.log_likelihood(x), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.posteriors(x), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.most_probable_path(x), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.sample(3, Random(1, 2)), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.step(std::vector<std::vector<Token>>{x}), UsageError, refused);
        REQUIRE_THROWS_MATCHES(m.predict(x, [](Index, ArrayView<const double>) {}), UsageError, refused);
    }
}

TEST_CASE("Rows that do not sum to 1 are refused by number", "[hmm][errors]") {
    hmm::Hmm m({.states = 2, .symbols = 3});
    m.transition = {0.9, 0.1, 0.333f, 0.667f}, m.emission = {0.2f, 0.5f, 0.3f, 0, 0, 1};
    REQUIRE_NOTHROW(m.list_edges());
    m.transition[2] = 0.5;
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, says("hmm: row 1 of `transition` sums to 1.167"));
    m.transition[2] = 0.333;
    m.emission[0] = 2;
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, says("row 0 of `emission` sums to 2.8"));
    m.emission[0] = 0.2;
    m.initial = {0, 0};
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, says("row 0 of `initial` sums to 0, expected 1"));
    m.initial = {1, -0.0};
    REQUIRE_NOTHROW(m.list_edges());
    m.transition = {0.5, 0.5, 1.5, -0.5};  // of sum 1
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError,
                           says("hmm: row 1 of `transition` holds -0.5, expected at least 0"));
    m.transition = {0.5, 0.5, 0.5, 0.5}, m.emission = {-1, 1, 1, 0, 0, 1};
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, says("row 0 of `emission` holds -1"));
    m.emission = {0, 0, 1, 0, 0, 1}, m.initial = {2, -1};
    REQUIRE_THROWS_MATCHES(m.list_edges(), UsageError, says("row 0 of `initial` holds -1"));
}

TEST_CASE("A model with numbers that are not finite is named as the cause", "[hmm][errors]") {
    const double bad =
        GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
    const int matrix = GENERATE(0, 1, 2);
    const bool sparse = GENERATE(false, true);
    CAPTURE(bad, matrix, sparse);
    hmm::Hmm m({.states = sparse ? 8 : 2, .symbols = 3, .edges = sparse ? 1 : 0});
    (matrix == 0 ? m.initial : matrix == 1 ? m.transition : m.emission)[0] = bad;
    m.list_edges();
    const std::vector<Token> x = {0, 0, not_predicted, 0};
    const auto cause = says("hmm: symbol 0 at position", "init, P or E contain numbers that are not finite");
    REQUIRE_THROWS_MATCHES(m.log_likelihood(x), NumericError, cause);
    const std::vector<std::vector<Token>> many = {x, x};
    REQUIRE_THROWS_MATCHES(m.log_likelihood(many), NumericError, cause);
    REQUIRE_THROWS_MATCHES(m.posteriors(x), NumericError, cause);
    const auto among =
        says("hmm: found ", "among init, P and E, expected numbers of at least 0 that are finite");
    REQUIRE_THROWS_MATCHES(m.most_probable_path(x), NumericError, among);
    const std::vector<Token> missing(3, not_predicted);
    if (matrix < 2) {
        REQUIRE_THROWS_MATCHES(m.posteriors(missing), NumericError, says("hmm: symbol -1 at position"));
        REQUIRE_THROWS_MATCHES(m.most_probable_path(missing), NumericError, among);
        const auto unseen = says("hmm: symbol -1 at position");
        REQUIRE_THROWS_MATCHES(m.log_likelihood(missing), NumericError, unseen);
        const std::vector<std::vector<Token>> all_missing = {missing, missing};
        REQUIRE_THROWS_MATCHES(m.log_likelihood(all_missing), NumericError, unseen);
        REQUIRE_THROWS_MATCHES(m.step(all_missing), NumericError, unseen);
    }
    const auto emission = m.emission;
    REQUIRE_THROWS_MATCHES(m.step(many), NumericError, cause);
    REQUIRE(std::equal(emission.begin() + 1, emission.end(), m.emission.begin() + 1));
    bool finite = true;
    const auto predict = [&] {
        m.predict(x, [&](Index, std::span<const double> p) {
            for (const double v : p) finite = finite && std::isfinite(v);
        });
    };
    REQUIRE_THROWS_MATCHES(predict(), NumericError, cause);
    REQUIRE(finite);
}

TEST_CASE("A transition of hardly any probability is learned, or refused if its count overflows",
          "[hmm][errors]") {
    // Symbols are the states, and all of the sequences go from 0 to 1.
    const auto step = [](double p, std::size_t sequences) {
        hmm::Hmm m({.states = 2, .symbols = 2});
        m.initial = {1, 0};
        m.transition = {1, p, 0, 1};
        m.emission = {1, 0, 0, 1};
        const auto before = m.transition;
        const std::vector<std::vector<Token>> texts(sequences, {0, 1});
        try {
            m.step(texts);
        } catch (const NumericError&) {
            REQUIRE((m.transition == before && m.initial == decltype(m.initial){1, 0}));
            throw;
        }
        return m.transition;
    };
    const auto learned = step(1e-306, 20);
    REQUIRE((learned[0] == 0 && learned[1] == 1 && learned[2] == 0 && learned[3] == 1));
    REQUIRE_THROWS_MATCHES(
        step(1e-306, 2000), NumericError,
        says("from state 0 to state 1", "probability is 1e-306", "the model is unchanged"));
}

TEST_CASE("Hidden Markov models refuse what they cannot be or read", "[hmm]") {
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 0, .symbols = 3}), UsageError, says("states = 0"));
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 2, .symbols = 3, .edges = 3}), UsageError, says("edges = 3"));
    hmm::Hmm m({.states = 2, .symbols = 3});
    const std::vector<std::vector<Token>> wrong = {{0, 1}, {0, 3}};
    const auto before = m.emission;
    REQUIRE_THROWS_MATCHES(m.step(wrong), DataError, says("symbol 3 at position 1", "0 to 2"));
    REQUIRE(m.emission == before);
    m.emission = {0.5, 0.5, 0, 0.5, 0.5, 0};
    const std::vector<Token> impossible = {0, 2};
    REQUIRE_THROWS_MATCHES(m.log_likelihood(impossible), NumericError,
                           says("symbol 2 at position 1", "probability 0"));
    REQUIRE_THROWS_MATCHES(m.posteriors(impossible), NumericError,
                           says("symbol 2 at position 1", "probability 0"));
    REQUIRE_THROWS_MATCHES(m.most_probable_path(impossible), NumericError,
                           says("symbol 2 at position 1", "probability 0"));
    REQUIRE_THROWS_MATCHES(m.posteriors(wrong[1]), DataError, says("symbol 3 at position 1", "0 to 2"));
    REQUIRE_THROWS_MATCHES(m.most_probable_path(wrong[1]), DataError,
                           says("symbol 3 at position 1", "0 to 2"));
    m.transition[2] = -0.5;
    REQUIRE_THROWS_MATCHES(m.most_probable_path(wrong[0]), NumericError, says("found -0.5", "at least 0"));
    REQUIRE_THROWS_MATCHES(m.step(std::vector<std::vector<Token>>{impossible}), NumericError,
                           says("no path of initial, transition and emission", "prior above 0"));
    hmm::Hmm single({.states = 1, .symbols = 1});
    REQUIRE(single.step(std::vector<std::vector<Token>>{{0}, {}, {0, 0, 0}}) == Approx(0));
    REQUIRE(single.log_likelihood(std::vector<Token>{0, 0}) == Approx(0));
}
