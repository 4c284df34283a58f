#include "io/files.hpp"

#include <isogloss/counts/files.hpp>
#include <limits>
#include <new>

#include "allocations.hpp"
#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::counts;

namespace {

text::Vocabulary six_words() {
    return text::Vocabulary::from_words({"a", "b", "c", "d", "e", "<eos>"}, {9, 8, 7, 6, 5, 4});
}

}  // namespace

TEST_CASE("Counts come back from a file as they were", "[counts][files]") {
    const TemporaryDirectory place;
    LagCounts counts(6, {.lags = 3, .boundary = 5});
    counts.add(texts::markov(200, 6));
    save_counts(place / "counts", counts, six_words());
    const auto back = load_counts(place / "counts");
    CHECK(back.counts == counts);
    CHECK(back.counts.tokens() == 200);
    CHECK(back.vocabulary == six_words());
    const auto five = text::Vocabulary::from_words({"a", "b", "c", "d", "<eos>"});
    REQUIRE_THROWS_MATCHES(save_counts(place / "wrong", counts, five), UsageError, says("6 words", "5"));
}

TEST_CASE("What are no counts is refused", "[counts][files]") {
    const TemporaryDirectory place;
    const std::string words = six_words().to_text();
    const std::vector<std::int64_t> n(6, 1);
    const std::int64_t boundary = -1;
    std::vector<std::int32_t> starts = {0, 1, 1, 1, 1, 1, 2}, columns = {3, 6};
    const std::vector<std::uint32_t> values = {1, 1};
    const auto write = [&] {
        io::write_safetensors(place / "f", std::vector<io::TensorView>{
                                               io::text_view("vocabulary", words),
                                               io::tensor_view<std::int64_t>("occurrences", {6}, n),
                                               io::tensor_view<std::int64_t>("boundary", {}, {&boundary, 1}),
                                               io::tensor_view<std::int32_t>("starts/1", {7}, starts),
                                               io::tensor_view<std::int32_t>("columns/1", {2}, columns),
                                               io::tensor_view<std::uint32_t>("values/1", {2}, values)});
    };
    write();
    REQUIRE_THROWS_MATCHES(load_counts(place / "f"), FileError, says("not the counts of one text"));
    columns[1] = 5;
    write();
    CHECK(load_counts(place / "f").counts.lag(1)(5, 5) == 1);
    starts[3] = 7;
    write();
    REQUIRE_THROWS_MATCHES(load_counts(place / "f"), FileError, says("not the counts of one text"));
    REQUIRE_THROWS_AS(load_counts(place / "missing"), FileError);
}

TEST_CASE("A file of counts whose words occur too often is refused", "[counts][files][errors]") {
    const TemporaryDirectory place;
    const std::string words = six_words().to_text();
    const std::int64_t boundary = -1, most = std::numeric_limits<std::int64_t>::max();
    const std::vector<std::int64_t> n = {most, most, 1, 1, 1, 1};
    const std::vector<std::int32_t> starts(7, 0), none;
    io::write_safetensors(place / "f", std::vector<io::TensorView>{
                                           io::text_view("vocabulary", words),
                                           io::tensor_view<std::int64_t>("occurrences", {6}, n),
                                           io::tensor_view<std::int64_t>("boundary", {}, {&boundary, 1}),
                                           io::tensor_view<std::int32_t>("starts/1", {7}, starts),
                                           io::tensor_view<std::int32_t>("columns/1", {0}, none),
                                           io::tensor_view<std::uint32_t>("values/1", {0}, {})});
    REQUIRE_THROWS_MATCHES(load_counts(place / "f"), FileError, says("not the counts of one text"));
}

TEST_CASE("Counts of several parts are saved as their sum, to the byte", "[counts][files]") {
    const TemporaryDirectory place;
    const auto text = texts::markov(3000, 6);
    const CountOptions options{.lags = 3, .boundary = 5, .vocabulary_checksum = six_words().checksum()};
    std::vector<LagCounts> parts(4, LagCounts(6, options));
    LagCounts whole(6, options);
    whole.add(text);
    for (const Index i : {0, 1, 3}) parts[std::size_t(i)].add(text, 750 * i, i == 1 ? 2250 : 750 * (i + 1));
    save_counts(place / "whole", whole, six_words());
    save_counts(place / "sum", parts, six_words());
    CHECK(contents(place / "sum") == contents(place / "whole"));

    // 2⁶³ - 1 tokens and no more, with counts beyond 32 bits
    constexpr std::int64_t n = (std::int64_t{1} << 62) - 1;
    const auto two = text::Vocabulary::from_words({"a", "b"}, {}, {.eos_per_line = false});
    const auto part = [&](std::int64_t tokens, std::int64_t pairs) {
        return LagCounts::from_parts({.lags = 1}, {tokens, 0}, {SparseCounts{{0, 1, 1}, {0}, {}, {pairs}}});
    };
    save_counts(place / "large", std::vector{part(n, n - 1), part(n, n - 2), part(1, 0)}, two);
    const auto back = load_counts(place / "large").counts;
    CHECK(back.tokens() == 2 * n + 1);
    CHECK(back.lag(1)(0, 0) == 2 * n - 3);
    REQUIRE_THROWS_MATCHES(save_counts(place / "f", std::vector{back, part(1, 0)}, two), DataError,
                           says("2⁶³ - 1"));
    const LagCounts others(6, {.lags = 2});
    REQUIRE_THROWS_MATCHES(save_counts(place / "f", std::vector{whole, others}, six_words()), UsageError,
                           says("2 lags", "alike"));
}

TEST_CASE("Counts that know their words are saved with no others", "[counts][files]") {
    const TemporaryDirectory place;
    LagCounts counts(6, {.lags = 1, .vocabulary_checksum = six_words().checksum()});
    const auto others = text::Vocabulary::from_words({"u", "v", "w", "x", "y", "<eos>"});
    REQUIRE_THROWS_MATCHES(save_counts(place / "f", counts, others), UsageError,
                           says("of another vocabulary"));
    save_counts(place / "f", counts, six_words());
    CHECK(load_counts(place / "f").counts.options().vocabulary_checksum == six_words().checksum());
}

TEST_CASE("Where memory runs out a sound file is not called damaged", "[counts][files][errors]") {
    const TemporaryDirectory place;
    LagCounts counts(6, {.lags = 2});
    counts.add(texts::markov(2000, 6));
    save_counts(place / "f", counts, six_words());
    for (std::size_t k = 0;; ++k) {
        const FailingAllocation failing(k);
        try {
            static_cast<void>(load_counts(place / "f"));
        } catch (const std::bad_alloc&) {
        } catch (const Error& error) {
            CHECK_THAT(error, says("memory"));
        }
        if (!failing.happened()) break;
    }
}
