#include "io/files.hpp"

#include <isogloss/lds/files.hpp>
#include <limits>

#include "catch.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::lds;
using texts::difference;

namespace {

text::Vocabulary six_words() {
    return text::Vocabulary::from_words({"a", "b", "c", "d", "e", "<eos>"}, {9, 8, 7, 6, 5, 4});
}

}  // namespace

TEMPLATE_TEST_CASE("A system comes back from a file as it was, bit by bit", "[lds][files]", float, double) {
    const TemporaryDirectory place;
    LdsFile<TestType> it{texts::recorded<TestType>(),
                         dense::identity(2),
                         2 * dense::identity(2),
                         six_words(),
                         {3, 2},
                         {-7, -6.5},
                         {{"program.note", "x"}}};
    save_lds(place / "model", it);
    const auto back = load_lds<TestType>(place / "model");
    CHECK(difference(back.system.A, it.system.A) == 0);
    CHECK(difference(back.system.C, it.system.C) == 0);
    CHECK(difference(back.system.M, it.system.M) == 0);
    CHECK(difference(back.xx_filtered, it.xx_filtered) == 0);
    CHECK(back.system.whitening.mu == it.system.whitening.mu);
    CHECK(back.singular_values == it.singular_values);
    CHECK(back.log_likelihoods == it.log_likelihoods);
    CHECK(back.notes == it.notes);
    CHECK(back.vocabulary == it.vocabulary);

    auto wrong = it;
    wrong.vocabulary = text::Vocabulary();
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), UsageError,
                           says("save_lds", "6 words and a vocabulary of 0"));
    wrong = it;
    wrong.xx_filtered = dense::identity(3);
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), UsageError, says("save_lds", "[3, 3]"));
    CHECK(load_lds<TestType>(place / "model").notes == it.notes);  // as it was

    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinite = std::numeric_limits<double>::infinity();
    wrong = it;
    wrong.system.A(0, 0) = nan;
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError, says("save_lds: found nan in A"));
    wrong = it;
    wrong.system.C(5, 1) = TestType(infinite);
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError, says("save_lds: found inf in C"));
    wrong = it;
    wrong.xx_filtered(1, 1) = nan;
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError, says("nan in a covariance"));
    CHECK(load_lds<TestType>(place / "model").notes == it.notes);

    const auto file = io::Safetensors::open(place / "model");
    const std::vector<double> no_numbers(4, nan);
    std::vector<io::TensorView> parts;
    for (const char* name : {"A", "M", "xx", "xx_filtered", "C", "frequencies", "mass", "vocabulary",
                             "singular_values", "log_likelihoods"}) {
        const auto& part = file.at(name);
        parts.push_back({name, part.dtype, part.shape, part.bytes});
    }
    parts[0].bytes = std::as_bytes(std::span(no_numbers));
    io::write_safetensors(place / "nan", parts);
    REQUIRE_THROWS_MATCHES(load_lds<TestType>(place / "nan"), FileError, says("nan in A"));
    // What is no covariance, and no number of tokens.
    const std::vector<double> lopsided = {1, 0.5, 0.25, 1};
    const auto original = [&](std::size_t i) { return file.at(parts[i].name).bytes; };
    parts[0].bytes = original(0);
    for (const std::size_t i : {1, 2, 3}) {
        parts[i].bytes = std::as_bytes(std::span(lopsided));
        io::write_safetensors(place / "lopsided", parts);
        REQUIRE_THROWS_MATCHES(load_lds<TestType>(place / "lopsided"), FileError, says("not symmetric"));
        parts[i].bytes = original(i);
    }
    for (const double mass : {nan, 0.0, -1.0}) {
        parts[6].bytes = std::as_bytes(std::span(&mass, 1));
        io::write_safetensors(place / "mass", parts);
        REQUIRE_THROWS_MATCHES(load_lds<TestType>(place / "mass"), FileError, says("found mass = "));
        wrong = it;
        wrong.system.whitening.mass = mass;
        REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError,
                               says("save_lds: found mass = "));
    }
    for (SmallMatrix LdsFile<TestType>::*const of :
         {&LdsFile<TestType>::xx, &LdsFile<TestType>::xx_filtered}) {
        wrong = it;
        (wrong.*of)(0, 1) += 1e-6;
        REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError, says("not symmetric"));
        wrong = it;
        (wrong.*of)(0, 1) += 1e-15;  // rounding
        CHECK_NOTHROW(save_lds(place / "rounded", wrong));
        CHECK_NOTHROW(load_lds<TestType>(place / "rounded"));
    }
    wrong = it;
    wrong.system.M(1, 0) += 1e-6;
    REQUIRE_THROWS_MATCHES(save_lds(place / "model", wrong), NumericError, says("M, ", "not symmetric"));
    CHECK(load_lds<TestType>(place / "model").notes == it.notes);

    using Other = std::conditional_t<std::is_same_v<TestType, float>, double, float>;
    REQUIRE_THROWS_MATCHES(load_lds<Other>(place / "model"), FileError, says("'C'", "F32", "F64"));
}

TEST_CASE("A system is held against the file before anything of its size is allocated",
          "[lds][files][errors]") {
    const TemporaryDirectory place;
    const std::string words = six_words().to_text();
    constexpr Index h = 100'000;  // A would have 80 GB
    const std::vector<float> C(6 * h, 1.f);
    const std::vector<double> frequencies(6, 0.1), small(4, 1);
    const double mass = 1;
    const auto write = [&](io::TensorView table) {
        io::write_safetensors(
            place / "f",
            std::vector<io::TensorView>{
                io::tensor_view<double>("A", {2, 2}, small), io::tensor_view<double>("M", {2, 2}, small),
                io::tensor_view<double>("xx", {2, 2}, small),
                io::tensor_view<double>("xx_filtered", {2, 2}, small), std::move(table),
                io::tensor_view<double>("frequencies", {6}, frequencies),
                io::tensor_view<double>("mass", {}, {&mass, 1}), io::text_view("vocabulary", words),
                io::tensor_view<double>("singular_values", {0}, {}),
                io::tensor_view<double>("log_likelihoods", {0}, {})});
    };
    write(io::tensor_view<float>("C", {6, h}, C));
    REQUIRE_THROWS_MATCHES(load_lds<float>(place / "f"), FileError, says("'C'", "[6, 100000]", "[6, 2]"));
    const std::vector<std::uint8_t> bytes(6 * h);
    write(io::tensor_view<std::uint8_t>("C", {6, h}, bytes));
    REQUIRE_THROWS_MATCHES(load_lds<float>(place / "f"), FileError, says("'C'"));
    write(io::tensor_view<std::uint8_t>("C", {6, 2}, std::span(bytes).first(12)));
    REQUIRE_THROWS_MATCHES(load_lds<float>(place / "f"), FileError, says("'C'", "U8", "F32"));
    write(io::tensor_view<float>("C", {6, 0}, {}));
    REQUIRE_THROWS_MATCHES(load_lds<float>(place / "f"), FileError, says("'C'", "[6, 0]"));
    write(io::tensor_view<float>("C", {6}, std::span(C).first(6)));
    REQUIRE_THROWS_MATCHES(load_lds<float>(place / "f"), FileError, says("'C'", "[6]"));
}
