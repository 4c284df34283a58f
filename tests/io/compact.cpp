#include <bit>
#include <cmath>
#include <cstdint>
#include <isogloss/graph/graph.hpp>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/io/compact.hpp>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "files.hpp"
#include "tolerance.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {
template <class T>
TensorView of(const std::string& name, DType type, std::vector<Index> shape, const std::vector<T>& values) {
    return {name, type, std::move(shape), std::as_bytes(std::span(values))};
}
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> wave(std::size_t n, float scale = 1) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = scale * std::sin(static_cast<float>(i) * 0.7f + 1);
    return out;
}
}  // namespace

TEST_CASE("Half precision is read exactly, all 65536 of it", "[io][compact]") {
    // Exact by construction: fraction and exponent as the standard has them, in double.
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const int exponent = static_cast<int>(bits >> 10 & 31);
        const double fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
        const float found = io::detail::half_to_float(static_cast<std::uint16_t>(bits));
        if (exponent == 31 && fraction > 0) {
            REQUIRE(std::isnan(found));
            continue;
        }
        const double expected = exponent == 31  ? sign * double{infinity}
                                : exponent == 0 ? sign * std::ldexp(fraction, -24)
                                                : sign * std::ldexp(1024 + fraction, exponent - 25);
        if (std::bit_cast<std::uint64_t>(static_cast<double>(found)) !=
            std::bit_cast<std::uint64_t>(expected))
            FAIL(bits << ": " << found << " against " << expected);
    }
}

TEST_CASE("Numbers of any floating type are read as float and as double", "[io][compact]") {
    TemporaryDirectory dir;
    const std::vector<std::uint16_t> half{0x3c00, 0xc000, 0x3555, 0x0001}, brain{0x3f80, 0xc040, 0x3eab};
    const std::vector<double> wide{1.0 / 3, -2};
    const std::vector<float> plain{1e-45f, 7};
    const std::vector<std::int8_t> table{127, -64, 0, 1, 2, 3};
    const std::vector<float> scale{0.5f, 2};
    const std::vector<std::int64_t> counts{4};
    write_safetensors(
        dir / "f",
        std::vector{of("half", DType::f16, {2, 2}, half), of("brain", DType::bf16, {3}, brain),
                    of("wide", DType::f64, {2}, wide), of("plain", DType::f32, {2}, plain),
                    of("table", DType::i8, {2, 3}, table), of("table.scale", DType::f32, {2}, scale),
                    of("alone", DType::i8, {2, 3}, table), of("n", DType::i64, {1}, counts),
                    of("odd", DType::i8, {3, 2}, table), of("odd.scale", DType::f32, {2}, scale)});
    const auto file = Safetensors::open(dir / "f");
    REQUIRE(numbers<float>(file, "half") == std::vector<float>{1, -2, 0.333251953125f, 0x1p-24f});
    REQUIRE(numbers<double>(file, "brain") == std::vector<double>{1, -3, 0.333984375});
    REQUIRE(numbers<float>(file, "wide") == std::vector<float>{1.f / 3, -2});
    REQUIRE(numbers<double>(file, "wide") == wide);
    REQUIRE(numbers<float>(file, "plain") == plain);
    REQUIRE(numbers<float>(file, "table") == std::vector<float>{63.5f, -32, 0, 2, 4, 6});
    REQUIRE_THROWS_WITH(numbers<float>(file, "n"),
                        Catch::Matchers::ContainsSubstring("tensor 'n' is I64, expected F16"));
    REQUIRE_THROWS_WITH(numbers<float>(file, "alone"), Catch::Matchers::ContainsSubstring("F32 scales"));
    REQUIRE_THROWS_WITH(numbers<float>(file, "odd"),  // which has two scales for three rows
                        Catch::Matchers::ContainsSubstring("'odd' is I8, expected F16"));
    REQUIRE_THROWS_AS(numbers<float>(file, "none"), FileError);

    const auto wider = widened(file);
    REQUIRE(wider.values<float>("half") == numbers<float>(file, "half"));
    REQUIRE(wider.values<float>("brain") == numbers<float>(file, "brain"));
    REQUIRE(wider.values<float>("table") == numbers<float>(file, "table"));
    REQUIRE(wider.at("half").shape == std::vector<Index>{2, 2});
    REQUIRE(wider.values<double>("wide") == wide);  // not narrower than float: as it was
    REQUIRE(wider.values<std::int8_t>("alone") == table);
    REQUIRE(wider.find("table.scale") == nullptr);
    REQUIRE(wider.values<std::int8_t>("odd") == table);
    REQUIRE(wider.values<float>("odd.scale") == scale);
    REQUIRE(wider.tensors().size() == file.tensors().size() - 1);

    const auto widest = widened<double>(file);
    for (const auto* name : {"half", "brain", "plain", "table", "wide", "odd.scale"})
        REQUIRE(widest.values<double>(name) == numbers<double>(file, name));
    REQUIRE(widest.values<std::int8_t>("alone") == table);
    REQUIRE(widest.find("table.scale") == nullptr);
    REQUIRE(widest.tensors().size() == wider.tensors().size());

    auto given = Safetensors::open(dir / "f");
    const std::weak_ptr<const void> bytes = given.owner();
    const auto kept = widened(std::move(given));  // with what was not widened
    given = file;
    REQUIRE_FALSE(bytes.expired());
    REQUIRE(kept.values<double>("wide") == wide);
}

TEST_CASE("Tables in fewer bytes are as near as their type allows", "[io][compact]") {
    TemporaryDirectory dir;
    const auto table = wave(40 * 30, 3), bias = wave(30);
    const std::string words = "a b";
    write_safetensors(
        dir / "f32",
        std::vector{tensor_view<float>("E", {40, 30}, table), tensor_view<float>("b", {1, 30}, bias),
                    tensor_view<float>("state/m", {40, 30}, table), text_view("state/words", words)},
        {{"who", "me"}});
    const auto file = Safetensors::open(dir / "f32");
    for (const auto type : {Compact::none, Compact::bf16, Compact::int8}) {
        write_compact(dir / "small", file, type);
        const auto small = Safetensors::open(dir / "small");
        const auto stored = type == Compact::none   ? DType::f32
                            : type == Compact::bf16 ? DType::bf16
                                                    : DType::i8;
        REQUIRE(small.at("E").dtype == stored);
        REQUIRE(small.metadata() == file.metadata());
        const auto back = widened(small);
        REQUIRE(back.values<float>("b") == bias);
        REQUIRE(back.values<float>("state/m") == table);
        REQUIRE(back.characters("state/words") == words);
        REQUIRE(back.tensors().size() == 4);
        const auto E = back.values<float>("E");
        double worst = 0;
        for (std::size_t r = 0; r < 40; ++r) {
            float most = 0;
            for (std::size_t i = 0; i < 30; ++i) most = std::max(most, std::abs(table[r * 30 + i]));
            for (std::size_t i = 0; i < 30; ++i) {
                const double error = std::abs(double{E[r * 30 + i]} - table[r * 30 + i]);
                // half a step of 8 bits of precision; half a step of a row's 127
                const double allowed = type == Compact::none   ? 0
                                       : type == Compact::bf16 ? std::abs(table[r * 30 + i]) / 256
                                                               : most / 254 * 1.0001;
                REQUIRE(error <= allowed);
                worst = worse(worst, error);
            }
        }
        REQUIRE((worst > 0) == (type != Compact::none));
        // Once more changes nothing: the numbers are those of the type.
        write_compact(dir / "again", small, type);
        REQUIRE(widened(Safetensors::open(dir / "again")).values<float>("E") == E);
    }
}

TEST_CASE("Rows of zeros, empty tables and numbers that are not finite in int8", "[io][compact]") {
    TemporaryDirectory dir;
    std::vector<float> table{0, 0, 1e-45f, 3e38f};
    write_safetensors(dir / "f", std::vector{tensor_view<float>("E", {2, 2}, table),
                                             tensor_view<float>("none", {3, 0}, {})});
    write_compact(dir / "i", Safetensors::open(dir / "f"), Compact::int8);
    const auto back = widened(Safetensors::open(dir / "i"));
    const auto E = back.values<float>("E");
    REQUIRE((E[0] == 0 && E[1] == 0 && E[2] == 0 && std::abs(E[3] / 3e38f - 1) < 1e-6f));
    REQUIRE(back.at("none").shape == std::vector<Index>{3, 0});
    table[1] = infinity;
    write_safetensors(dir / "f", std::vector{tensor_view<float>("E", {2, 2}, table)});
    REQUIRE_THROWS_WITH(write_compact(dir / "i", Safetensors::open(dir / "f"), Compact::int8),
                        Catch::Matchers::ContainsSubstring("tensor 'E': row 0 holds inf"));
}

TEST_CASE("A number that bfloat16 cannot hold is refused, not made infinite", "[io][compact]") {
    TemporaryDirectory dir;
    const auto write = [&](const std::vector<float>& table) {
        write_safetensors(dir / "f", std::vector{tensor_view<float>("E", {2, 2}, table)});
        write_compact(dir / "b", Safetensors::open(dir / "f"), Compact::bf16);
        return numbers<float>(Safetensors::open(dir / "b"), "E");
    };
    REQUIRE_THROWS_MATCHES(write({1, 2, 3, 3.4e38f}), DataError, says("tensor 'E': row 1 holds 3.4e+38"));
    REQUIRE_THROWS_AS(write({-std::numeric_limits<float>::max(), 2, 3, 4}), DataError);
    const auto E = write({3.389e38f, -infinity, std::nanf(""), 0});  // what is not finite stays so
    REQUIRE((std::isfinite(E[0]) && E[1] == -infinity && std::isnan(E[2]) && E[3] == 0));
}

TEST_CASE("A number that float cannot hold and scales with a taken name are refused",
          "[io][compact][errors]") {
    TemporaryDirectory dir;
    const std::vector<double> wide{1, 2, 3, 1e300};
    const std::vector<float> table{1, 2, 3, 4}, scale{5, 6, 7};
    write_safetensors(
        dir / "f", std::vector{tensor_view<double>("E", {2, 2}, wide), tensor_view<float>("a", {2, 2}, table),
                               tensor_view<float>("a.scale", {3}, scale)});
    const auto file = Safetensors::open(dir / "f");
    REQUIRE_THROWS_MATCHES(numbers<float>(file, "E"), FileError,
                           says(dir / "f", "'E' holds 1e+300", "as double"));
    REQUIRE(numbers<double>(file, "E") == wide);
    REQUIRE_THROWS_MATCHES(write_compact(dir / "small", file, Compact::int8), DataError,
                           says("'a.scale'", "appears twice"));
    write_compact(dir / "small", file, Compact::bf16);
    REQUIRE(widened(Safetensors::open(dir / "small")).values<float>("a.scale") == scale);
    REQUIRE(Safetensors::open(dir / "small").values<double>("E") == wide);
}

TEST_CASE("A graph is loaded from a file of fewer bytes", "[io][compact]") {
    TemporaryDirectory dir;
    Graph<float> g({.time = 1, .batch = 1});
    const auto E = g.weight("E", 5, 4, uniform(0.5));
    Checkpoint c;
    c.model(g).save(dir / "f");
    const float before = g.value(E)(3, 2);
    write_compact(dir / "b", Safetensors::open(dir / "f"), Compact::bf16);
    const auto small = Safetensors::open(dir / "b");
    REQUIRE_THROWS_WITH(c.load(small, Restore::parameters),
                        Catch::Matchers::ContainsSubstring(
                            "'E' is BF16 [5, 4], expected F32 [5, 4]; load io::widened<float>(file)"));
    const std::vector<std::int8_t> bare(20);  // without scales there is nothing to widen it with
    write_safetensors(dir / "i", std::vector{of("E", DType::i8, {5, 4}, bare)});
    REQUIRE_THROWS_MATCHES(c.load(Safetensors::open(dir / "i"), Restore::parameters), FileError,
                           says("'E' is I8 [5, 4], expected F32 [5, 4]") && !says("widened"));
    write_compact(dir / "i", Safetensors::open(dir / "f"), Compact::int8);
    REQUIRE_THROWS_MATCHES(c.load(Safetensors::open(dir / "i"), Restore::parameters), FileError,
                           says("'E' is I8 [5, 4], expected F32 [5, 4]; load io::widened<float>(file)"));
    g.value(E)(3, 2) = 9;
    c.load(widened(small), Restore::parameters);
    REQUIRE(g.value(E)(3, 2) == Approx(before).epsilon(1. / 256));
    REQUIRE(g.value(E)(3, 2) != before);
}
