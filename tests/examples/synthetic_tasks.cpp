// The synthetic sources: their entropy rates against measured ones, and the judge of success.
#include <map>

#include "../../examples/synthetic/tasks.hpp"
#include "catch.hpp"

using namespace tasks;

TEST_CASE("Sources have the entropy rates worked out for them", "[synthetic]") {
    Options o;
    REQUIRE(entropy_rate(Name::alphabet, o) == Approx(1.67205).margin(5e-6));
    REQUIRE(entropy_rate(Name::music, o) == Approx(0.66583).margin(5e-6));
    REQUIRE(entropy_rate(Name::anbn, o) == Approx(0.0099459).margin(5e-8));
    o.shortest = 1000, o.longest = 2000;
    REQUIRE(entropy_rate(Name::anbn, o) == Approx(0.0033213).margin(5e-8));
    for (const auto& [bits, rate] :
         std::map<isogloss::Index, double>{{10, 1.03279}, {50, 1.09561}, {100, 1.06927}}) {
        o.bits = bits;
        REQUIRE(entropy_rate(Name::distant_xor, o) == Approx(rate).margin(5e-6));
    }
    o.bits = 3, o.fewest_bits = 2;  // lines of 2 or 3 bits: 2 of 4 · 1 and 3 of 8 · 3 texts, 7 or 8 symbols
    REQUIRE(entropy_rate(Name::distant_xor, o) ==
            Approx((std::log2(2 * 4.) + std::log2(2 * 8 * 3.)) / 2 / 7.5));
    o.answer_only = true;
    REQUIRE(entropy_rate(Name::distant_xor, o) == 0);
}

TEST_CASE("A text's surprise under its own source is the entropy rate", "[synthetic]") {
    // The alphabet: every choice the source makes can be read off the text.
    const Options o{.insert_digits = 0.2, .insert_capitals = 0.3};
    const Text text = generate(Name::alphabet, o, 5, 400000);
    double nats = 0;
    for (Index t = 1; t < text.size(); ++t) {
        const char before = text.shown(text.x[std::size_t(t) - 1]), now = text.shown(text.x[std::size_t(t)]);
        const bool resumed = text.telling[std::size_t(t)] == 2;
        if (now >= 'A' && now <= 'Z') {
            nats -= std::log(1 / 26.0);
            if (before >= '0' && before <= '8') nats -= std::log(0.3);
        } else if (before >= '0' && before <= '8') {
            nats -= resumed ? 0 : std::log(0.7);
        } else if (before >= 'a' && before <= 'z') {
            nats -= now == '0' ? std::log(0.2) : std::log(0.8);
        }
    }
    REQUIRE(nats / std::log(2.0) / static_cast<double>(text.size()) ==
            Approx(entropy_rate(Name::alphabet, o)).epsilon(0.01));
}

TEST_CASE("Texts are what the source says, and the same for the same seed", "[synthetic]") {
    Options o;
    o.longest = 40;
    for (const Name task : {Name::alphabet, Name::distant_xor, Name::music, Name::anbn}) {
        const Text a = generate(task, o, 1, 500), b = generate(task, o, 1, 500),
                   c = generate(task, o, 2, 500);
        REQUIRE(a.size() == 500);
        REQUIRE(a.x == b.x);
        REQUIRE(a.x != c.x);
        for (const auto v : a.x) REQUIRE((v >= 0 && v < a.vocabulary()));
    }
    o.bits = 12, o.answer_only = true;
    const Text lines = generate(Name::distant_xor, o, 3, 0, 200);
    REQUIRE(lines.size() == 200 * 17);
    for (std::size_t start = 0; start < lines.x.size(); start += 17) {
        int marked = 0, answer = 0, predicted = 0;
        for (std::size_t t = start; t < start + 14; ++t)
            if (lines.shown(lines.x[t]) == 'X') ++marked, answer ^= lines.shown(lines.x[t + 1]) == '1';
        for (std::size_t t = start; t < start + 17; ++t) predicted += lines.predicted[t];
        REQUIRE(marked == 2);
        REQUIRE(predicted == 1);
        REQUIRE(lines.predicted[start + 15] == 1);
        REQUIRE(lines.shown(lines.x[start + 15]) == '0' + answer);
    }
}

TEST_CASE("Lines of xor may differ in length", "[synthetic]") {
    const Text lines = generate(Name::distant_xor, {.bits = 5, .fewest_bits = 2}, 3, 0, 400);
    std::map<int, int> seen;
    int bits = 0, marked = 0;
    for (const auto v : lines.x) {
        const char c = lines.shown(v);
        bits += c == '0' || c == '1', marked += c == 'X';
        if (c != '\n') continue;
        REQUIRE(marked == 2);
        ++seen[bits - 1];
        bits = marked = 0;
    }
    REQUIRE(seen.size() == 4);
    for (const auto& [length, count] : seen) REQUIRE((length >= 2 && length <= 5 && count > 60));
}

TEST_CASE("Who foresees everything has succeeded, who guesses has not", "[synthetic]") {
    Options o;
    o.longest = 20;
    for (const Name task : {Name::alphabet, Name::distant_xor, Name::music, Name::anbn}) {
        const Text text = generate(task, o, 1, 5000);
        REQUIRE(success(task, text, text.x) == 1);
        REQUIRE(success(task, text, std::vector<isogloss::Token>(text.x.size(), text.x[0])) < 0.6);
    }
}

TEST_CASE("Sources refuse what they cannot write", "[synthetic]") {
    Options o;
    REQUIRE_THROWS_MATCHES(named("chess"), isogloss::DataError, says("'chess'", "anbn"));
    REQUIRE_THROWS_MATCHES(generate(Name::music, o, 1, 1), isogloss::DataError, says("at least 2"));
    o.bits = 1;
    REQUIRE_THROWS_MATCHES(entropy_rate(Name::distant_xor, o), isogloss::DataError, says("bits = 1"));
    o.bits = 10, o.fewest_bits = 11;
    REQUIRE_THROWS_MATCHES(entropy_rate(Name::distant_xor, o), isogloss::DataError, says("11 to 10"));
    o.insert_digits = 2;
    REQUIRE_THROWS_MATCHES(generate(Name::alphabet, o, 1, 10), isogloss::DataError, says("probability = 2"));
    o.longest = 0;
    REQUIRE_THROWS_MATCHES(generate(Name::anbn, o, 1, 10), isogloss::DataError, says("n from 1 to 0"));
}
