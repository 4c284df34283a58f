// The synthetic sources: their entropy rates against measured ones, and the judge of success.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "../../programs/synthetic/far_worse.hpp"
#include "../../programs/synthetic/tasks.hpp"
#include "catch.hpp"

using namespace tasks;

TEST_CASE("Sources have the entropy rates worked out for them", "[synthetic]") {
    Options o;
    REQUIRE(entropy_rate(alphabet, o) == Approx(1.67205).margin(5e-6));
    REQUIRE(entropy_rate(music, o) == Approx(0.66583).margin(5e-6));
    REQUIRE(entropy_rate(reber, o) == Approx(0.58333).margin(5e-6));
    REQUIRE(entropy_rate(dyck, o) == Approx(0.92683).margin(5e-6));
    REQUIRE(entropy_rate(copy, o) == Approx(0.67371).margin(1e-5));
    REQUIRE(entropy_rate(anbn, o) == Approx(0.0099459).margin(5e-8));
    o.shortest = 1000, o.longest = 2000;
    REQUIRE(entropy_rate(anbn, o) == Approx(0.0033213).margin(5e-8));
    for (const auto& [bits, rate] :
         std::map<isogloss::Index, double>{{10, 1.03279}, {50, 1.09561}, {100, 1.06927}}) {
        o.bits = bits;
        REQUIRE(entropy_rate(distant_xor, o) == Approx(rate).margin(5e-6));
    }
    o.bits = 3, o.fewest_bits = 2;  // lines of 2 or 3 bits: 2 of 4 · 1 and 3 of 8 · 3 texts, 7 or 8 symbols
    REQUIRE(entropy_rate(distant_xor, o) == Approx((std::log2(2 * 4.) + std::log2(2 * 8 * 3.)) / 2 / 7.5));
    o.answer_only = true;
    REQUIRE(entropy_rate(distant_xor, o) == 0);
}

TEST_CASE("A text is far worse than the one trained on by bits, or by their ratio where they are few",
          "[synthetic]") {
    const double none = std::numeric_limits<double>::quiet_NaN();
    REQUIRE(far_worse(0.69, 3.07, 0));  // music, units at a bound
    REQUIRE(far_worse(0.6, 1.61, 1));   // whatever else is right
    REQUIRE(far_worse(0.58, 1.48, 0));  // reber, units at a bound
    REQUIRE(!far_worse(0.6, 1.19, 0));  // a text that was too short
    REQUIRE(!far_worse(0.58, 1.48, 0, times_to_go_back));
    REQUIRE(far_worse(0.011, 0.3, 0));           // anbn: one bit is thirty times as much
    REQUIRE(far_worse(0.0102, 0.065, 0));        // anbn: ten lines learned by heart
    REQUIRE(!far_worse(0.0348, 0.0533, 0));      // anbn: more blurred on others
    REQUIRE(!far_worse(0.0100, 0.0590, 0));      // anbn: six times, but by less than 0.05
    REQUIRE(far_worse(1e-4, 1.0003, 0.5));       // xor: chance is 1 bit
    REQUIRE(!far_worse(0.0116, 0.2373, 0.993));  // xor: learned, and certain of a few wrong answers
    REQUIRE(!far_worse(0.9998, 1.0010, 0.51));   // xor: not learned at all
    REQUIRE(far_worse(0.3, 0.95, none));         // dyck has no success
    REQUIRE((far_worse(0.3, none, 1) && far_worse(none, none, 1)));
    REQUIRE((worse_than_before(1.01, 194) && worse_than_before(1.01, 1.07) && worse_than_before(1.01, none)));
    REQUIRE(!worse_than_before(1, 1.0003));  // xor: not learned at all
}

TEST_CASE("A text's surprise under its own source is the entropy rate", "[synthetic]") {
    // The alphabet: every choice the source makes can be read off the text.
    const Options o{.insert_digits = 0.2, .insert_capitals = 0.3};
    const Text text = generate(alphabet, o, 5, 400000);
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
            Approx(entropy_rate(alphabet, o)).epsilon(0.01));
}

TEST_CASE("The surprise of grammars, brackets and copies, read off their texts, is the entropy rate",
          "[synthetic]") {
    const auto bits = [](const Task& task, const Options& o, auto&& probability) {
        const Text text = generate(task, o, 9, 400000);
        std::string shown;
        for (const auto v : text.x) shown += text.shown(v);
        double sum = 0;
        for (std::size_t t = 0; t < shown.size(); ++t) sum -= std::log2(probability(shown, t));
        return sum / static_cast<double>(shown.size());
    };
    // A word of Reber: what follows a letter hangs on the letter and the one before it, but for the letter that comes again.
    std::size_t begun = 0;
    const auto of_reber = [&](const std::string& s, std::size_t t) {
        const auto before = [&](std::size_t k) { return t >= k ? s[t - k] : 'E'; };
        if (t - begun >= 3 &&
            before(1) == 'E') {  // after the inner word, or after the letter that came again
            REQUIRE(s[t] == s[begun + 1]);
            return 1.0;
        }
        if (t > begun && s[t] == 'E' && before(2) == 'E' && t - begun > 4) {
            begun = t + 1;
            return 1.0;
        }
        if (t - begun == 0 || t - begun == 2) {
            REQUIRE(s[t] == 'B');
            return 1.0;
        }
        return s[t] == 'E' ? 1.0 : 0.5;  // an inner word ends by itself; all else is a fork
    };
    CHECK(bits(reber, {}, of_reber) == Approx(7 / 12.).epsilon(0.01));
    for (const Index depth : {2, 10}) {
        Index open = 0, most = 0;
        const auto of_dyck = [&](const std::string& s, std::size_t t) {
            const bool first = t == 0 || s[t - 1] == '\n';
            const double p = first || open == depth ? 1 : 0.5;
            open += s[t] == '(' ? 1 : s[t] == ')' ? -1 : 0;
            REQUIRE((open >= 0 && open <= depth && (s[t] != '\n' || open == 0)));
            most = std::max(most, open);
            return p;
        };
        CHECK(bits(dyck, {.depth = depth}, of_dyck) ==
              Approx((4. * double(depth) - 2) / (4. * double(depth) + 1)).epsilon(0.01));
        CHECK(most == depth);
    }
    for (const auto& [lag, noise] : {std::pair<std::size_t, double>{2, 0.1}, {5, 0.3}, {1, 1}}) {
        const auto of_copy = [lag = lag, noise = noise](const std::string& s, std::size_t t) {
            return t < lag ? 0.125 : noise / 8 + (s[t] == s[t - lag]) * (1 - noise);
        };
        const Options o{.lag = static_cast<Index>(lag), .noise = noise};
        CHECK(bits(copy, o, of_copy) == Approx(entropy_rate(copy, o)).epsilon(0.01));
    }
}

TEST_CASE("A source tells what each of its symbols costs", "[synthetic]") {
    // Of a long text that is the entropy rate; without a draw, nothing.
    Options o;
    o.longest = 40;
    for (const Task* task : all) {
        CAPTURE(task->name);
        CHECK(source_bits(generate(*task, o, 3, 400000)) == Approx(entropy_rate(*task, o)).epsilon(0.01));
    }
    o.bits = 6, o.fewest_bits = 3;
    CHECK(source_bits(generate(distant_xor, o, 3, 400000)) ==
          Approx(entropy_rate(distant_xor, o)).epsilon(0.01));
    o.answer_only = true;
    CHECK(source_bits(generate(distant_xor, o, 3, 1000)) == 0);
    CHECK(source_bits(generate(alphabet, {.insert_digits = 0}, 3, 1000)) == 0);

    // Symbol by symbol, where the text alone says it.
    const auto nats = [](const Text& text, std::size_t t) { return text.nats[t]; };
    const Text lines = generate(anbn, {.shortest = 2, .longest = 5}, 4, 0, 50);
    for (std::size_t r = 0, t = 0; r < 50; ++r) {
        const std::size_t next = r + 1 < 50 ? static_cast<std::size_t>(lines.begins[r + 1]) : lines.x.size();
        const std::size_t n = (next - t - 1) / 2;
        double line = 0;
        for (std::size_t i = 0; t < next; ++t, ++i) {
            line += nats(lines, t);
            if (i < 2) CHECK(nats(lines, t) == 0);  // two are sure
            if (i > n) CHECK(nats(lines, t) == 0);  // as are all b but the first, and the end
        }
        CHECK(line == Approx(std::log(4.0)));  // n is one of four
    }
    const Text copied = generate(copy, {.noise = 0.4}, 4, 500);
    for (std::size_t t = 2; t < 500; ++t)
        CHECK(nats(copied, t) == Approx(-std::log(copied.x[t] == copied.x[t - 2] ? 0.65 : 0.05)));
    const Text marked =
        generate(distant_xor, {.bits = 2}, 4, 0, 20);  // both are marked: the bits alone are open
    for (std::size_t t = 0; t < marked.x.size(); ++t)
        CHECK(nats(marked, t) == Approx(t % 7 == 1 || t % 7 == 3 ? std::log(2.0) : 0).margin(1e-12));
    CHECK(source_bits(copied) > 0);
}

TEST_CASE("Texts are what the source says, and the same for the same seed", "[synthetic]") {
    Options o;
    o.longest = 40;
    for (const Task* each : all) {
        const Task& task = *each;
        CAPTURE(task.name);
        const Text a = generate(task, o, 1, 500), b = generate(task, o, 1, 500),
                   c = generate(task, o, 2, 500);
        REQUIRE(a.size() == 500);
        REQUIRE(a.x == b.x);
        REQUIRE(a.x != c.x);
        for (const auto v : a.x) REQUIRE((v >= 0 && v < a.vocabulary()));
    }
    o.bits = 12, o.answer_only = true;
    const Text lines = generate(distant_xor, o, 3, 0, 200);
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

TEST_CASE("A text that begins with another line has the same lines", "[synthetic]") {
    Options o;
    o.longest = 5;
    const auto lines = [](const Text& text) {
        std::vector<std::string> all(1);
        for (const auto v : text.x) {
            all.back() += text.shown(v);
            if (all.back().back() == '\n') all.emplace_back();
        }
        return all;
    };
    for (const Text& text : {generate(anbn, o, 1, 0, 7), generate(anbn, o, 1, 50)}) {
        auto expected = lines(text);
        CAPTURE(text.whole, expected.size());
        REQUIRE(expected.size() > 5);
        if (!text.whole) expected.back().clear();  // the incomplete line is left out
        std::rotate(expected.begin(), expected.begin() + 2, expected.end() - 1);
        const Text other = text.turned(2);
        REQUIRE(lines(other) == expected);
        REQUIRE(other.begins.size() + 1 == expected.size());
        for (std::size_t k = 0, at = 0; k < other.begins.size(); at += expected[k++].size())
            REQUIRE(static_cast<std::size_t>(other.begins[k]) == at);
        REQUIRE(text.turned(0).x == text.x);
    }
}

TEST_CASE("Lines of xor may differ in length", "[synthetic]") {
    const Text lines = generate(distant_xor, {.bits = 5, .fewest_bits = 2}, 3, 0, 400);
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
    for (const Task* each : all) {
        const Task& task = *each;
        CAPTURE(task.name);
        const Text text = generate(task, o, 1, 5000);
        if (each == &dyck) {  // nothing tells
            REQUIRE(std::isnan(success(text, text.x)));
            continue;
        }
        REQUIRE(success(text, text.x) == 1);
        REQUIRE(success(text, std::vector<isogloss::Token>(text.x.size(), text.x[0])) < 0.6);
    }
}

TEST_CASE("Sources refuse what they cannot write", "[synthetic]") {
    Options o;
    REQUIRE_THROWS_MATCHES(named("chess"), isogloss::DataError, says("'chess'", "anbn"));
    REQUIRE_THROWS_MATCHES(generate(music, o, 1, 1), isogloss::DataError, says("at least 2"));
    o.bits = 1;
    REQUIRE_THROWS_MATCHES(entropy_rate(distant_xor, o), isogloss::DataError, says("bits = 1"));
    o.bits = 10, o.fewest_bits = 11;
    REQUIRE_THROWS_MATCHES(entropy_rate(distant_xor, o), isogloss::DataError, says("11 to 10"));
    o.insert_digits = 2;
    REQUIRE_THROWS_MATCHES(generate(alphabet, o, 1, 10), isogloss::DataError, says("probability = 2"));
    REQUIRE_THROWS_MATCHES(generate(dyck, {.depth = 1}, 1, 10), isogloss::DataError, says("depth = 1"));
    REQUIRE_THROWS_MATCHES(generate(copy, {.lag = 0}, 1, 10), isogloss::DataError, says("lag = 0"));
    REQUIRE_THROWS_MATCHES(generate(copy, {.noise = 1.5}, 1, 10), isogloss::DataError, says("noise = 1.5"));
    o.longest = 0;
    REQUIRE_THROWS_MATCHES(generate(anbn, o, 1, 10), isogloss::DataError, says("n from 1 to 0"));
    o.longest = longest_line + 1;
    REQUIRE_THROWS_MATCHES(generate(anbn, o, 1, 10), isogloss::DataError, says("n from 1 to 1000001"));
}

TEST_CASE("A text is cut into parts of as many whole lines, which are the text again one after the other",
          "[synthetic]") {
    tasks::Options o;
    o.longest = 5;
    const auto text = tasks::generate(tasks::anbn, o, 3, 2, 11);
    REQUIRE(text.begins.size() == 11);
    const auto parts = text.in_parts(4);
    REQUIRE(parts.size() == 4);
    tasks::Text joined;
    for (const auto& part : parts) {
        CHECK((part.begins.size() == 2 || part.begins.size() == 3));
        CHECK(part.begins[0] == 0);
        for (const auto b : part.begins) {
            CHECK(part.shown(part.x[static_cast<std::size_t>(b)]) == 'a');
            if (b > 0) CHECK(part.shown(part.x[static_cast<std::size_t>(b) - 1]) == '\n');
        }
        const auto append = [](auto& all, const auto& some) {
            all.insert(all.end(), some.begin(), some.end());
        };
        append(joined.x, part.x), append(joined.predicted, part.predicted);
        append(joined.telling, part.telling), append(joined.nats, part.nats);
    }
    CHECK(joined.x == text.x);
    CHECK(joined.predicted == text.predicted);
    CHECK(joined.telling == text.telling);
    CHECK(joined.nats == text.nats);
    CHECK(text.in_parts(5).size() == 5);
    CHECK(text.in_parts(6).size() == 1);  // one line in some
    CHECK(text.in_parts(1)[0].x == text.x);
}
