// What hidden Markov models refuse, and how they name the cause.
#include <isogloss/hmm/hmm.hpp>
#include <isogloss/io.hpp>
#include <limits>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Writes a file as a model of two states does.
struct Damaged {
    std::vector<double> initial = {1, 0}, transition = {0.5, 0.5, no_number, 0.5}, emission = {0, 1, 1, 0};
    template <class Visitor> void visit(Visitor& v) {
        v.array("initial", initial.data(), 1, 2);
        v.array("transition", transition.data(), 2, 2);
        v.array("emission", emission.data(), 2, 2);
    }
};

}  // namespace

TEST_CASE("What is no model of these sizes is refused, and changes nothing", "[hmm][errors]") {
    hmm::Hmm m({.states = 2, .symbols = 3});
    const Array<double> half = {0.5, 0.5}, P = {0.9, 0.1, 0.333f, 0.667f}, E = {0.2f, 0.5f, 0.3f, 0, 0, 1};
    REQUIRE_NOTHROW(m.set({1, -0.0}, P, E));  // of float, and of few decimals
    const hmm::Hmm before = m;
    REQUIRE_THROWS_AS(m.set({1, 0, 0}, P, E), UsageError);
    REQUIRE_THROWS_AS(m.set(half, {1}, E), UsageError);
    REQUIRE_THROWS_AS(m.set(half, P, {}), UsageError);
    REQUIRE_THROWS_MATCHES(m.set(half, {0.9, 0.1, 0.5, 0.667}, E), DataError, says("row 1 of `transition`"));
    REQUIRE_THROWS_MATCHES(m.set({0, 0}, P, E), DataError, says("row 0 of `initial`"));
    REQUIRE_THROWS_MATCHES(m.set(half, {0.5, 0.5, 1.5, -0.5}, E), DataError, says("row 1"));
    for (const double bad : {no_number, std::numeric_limits<double>::infinity()})
        REQUIRE_THROWS_AS(m.set(half, P, {0.2, 0.5, 0.3, bad, 0, 1}), DataError);
    REQUIRE((m.initial() == before.initial() && m.transition() == before.transition() &&
             m.emission() == before.emission()));
}

TEST_CASE("A damaged file is refused, and leaves a model that works", "[hmm][errors]") {
    Damaged damaged;
    const TemporaryDirectory folder;
    hmm::Hmm m({.states = 2, .symbols = 2});
    const double before = m.log_likelihood(std::vector<Token>{0, 1});
    io::Checkpoint().state("hmm", damaged).save(folder / "hmm");
    REQUIRE_THROWS_MATCHES(io::Checkpoint().state("hmm", m).load(io::Safetensors::open(folder / "hmm")),
                           DataError, says("row 1 of `transition`"));
    REQUIRE(m.log_likelihood(std::vector<Token>{0, 1}) == before);
}

TEST_CASE("A transition of hardly any probability is learned, or refused if its count overflows",
          "[hmm][errors]") {
    // Symbols are the states, and all of the sequences go from 0 to 1.
    const auto step = [](double p, std::size_t sequences) {
        hmm::Hmm m({.states = 2, .symbols = 2});
        m.set({1, 0}, {1, p, 0, 1}, {1, 0, 0, 1});
        const hmm::Hmm before = m;
        const std::vector<std::vector<Token>> texts(sequences, {0, 1});
        try {
            m.step(texts);
        } catch (const NumericError&) {
            REQUIRE((m.transition() == before.transition() && m.initial() == before.initial()));
            throw;
        }
        return m.transition();
    };
    REQUIRE(step(1e-306, 20) == Array<double>{0, 1, 0, 1});
    REQUIRE_THROWS_AS(step(1e-306, 2000), NumericError);
}

TEST_CASE("Hidden Markov models refuse what they cannot be or read", "[hmm][errors]") {
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 0, .symbols = 3}), UsageError, says("states = 0"));
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 2, .symbols = 3, .edges = 3}), UsageError, says("edges = 3"));
    REQUIRE_THROWS_MATCHES(hmm::Hmm({.states = 2, .symbols = 3, .stay = 1.5}), UsageError,
                           says("stay = 1.5"));
    hmm::Hmm m({.states = 2, .symbols = 3});
    m.set(m.initial(), m.transition(), {0.5, 0.5, 0, 0.5, 0.5, 0});
    const std::vector<std::vector<Token>> wrong = {{0, 1}, {0, 3}}, impossible = {{0, 2}};
    const auto before = m.emission();
    const auto symbol = says("symbol 3 at position 1");
    REQUIRE_THROWS_MATCHES(m.step(wrong), DataError, symbol);
    REQUIRE_THROWS_MATCHES(m.posteriors(wrong[1]), DataError, symbol);
    REQUIRE_THROWS_MATCHES(m.most_probable_path(wrong[1]), DataError, symbol);
    REQUIRE_THROWS_MATCHES(m.predict(wrong[1], [](auto&&...) {}), DataError, symbol);
    const auto never = says("symbol 2 at position 1");
    REQUIRE_THROWS_MATCHES(m.step(impossible), NumericError, never);
    REQUIRE_THROWS_MATCHES(m.log_likelihood(impossible[0]), NumericError, never);
    REQUIRE_THROWS_MATCHES(m.most_probable_path(impossible[0]), NumericError, never);
    REQUIRE(m.emission() == before);
    hmm::Hmm single({.states = 1, .symbols = 1});
    REQUIRE(single.step(std::vector<std::vector<Token>>{{0}, {}, {0, 0, 0}}) == Approx(0));
}
