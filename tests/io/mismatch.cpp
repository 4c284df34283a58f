#include <isogloss/io/mismatch.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {
Safetensors stored(const TemporaryDirectory& dir) {
    const std::vector<float> f(6);
    const std::vector<double> d(6);
    write_safetensors(dir / "m",
                      std::vector{tensor_view<float>("E", {2, 3}, f), tensor_view<float>("W", {6}, f),
                                  tensor_view<double>("U", {2, 3}, d), tensor_view<float>("old", {6}, f),
                                  tensor_view<float>("update/E", {6}, f)});
    return Safetensors::open(dir / "m");
}
}  // namespace

TEST_CASE("A file that fits passes", "[io][mismatch]") {
    TemporaryDirectory dir;
    const auto file = stored(dir);
    const std::vector<TensorSpec> expected{{"old", DType::f32, {6}},
                                           {"E", DType::f32, {2, 3}},
                                           {"W", DType::f32, {6}},
                                           {"U", DType::f64, {2, 3}}};
    REQUIRE_NOTHROW(require_match(expected, file, {"update/"}));
    REQUIRE_THROWS_MATCHES(require_match(expected, file), FileError, says("extra", "'update/E'"));
}

TEST_CASE("One error lists everything that does not fit", "[io][mismatch]") {
    TemporaryDirectory dir;
    const auto file = stored(dir);
    const std::vector<TensorSpec> expected{{"new.W", DType::f32, {9}},
                                           {"E", DType::f32, {3, 2}},
                                           {"W", DType::f32, {6}},
                                           {"U", DType::f32, {2, 3}},
                                           {"new.b", DType::f64, {}}};
    REQUIRE_THROWS_MATCHES(
        require_match(expected, file), FileError,
        says(dir / "m", "nothing was loaded", "missing:\n    'new.W' F32 [9]\n    'new.b' F64 []",
             "extra:\n    'old'\n    'update/E'", "misshapen:", "'E' is F32 [2, 3], expected F32 [3, 2]",
             "'U' is F64 [2, 3], expected F32 [2, 3]"));
}

TEST_CASE("An ignored prefix does not hide what is expected", "[io][mismatch]") {
    TemporaryDirectory dir;
    const auto file = stored(dir);
    const std::vector<TensorSpec> expected{{"update/E", DType::f32, {7}}, {"update/W", DType::f32, {7}}};
    REQUIRE_THROWS_MATCHES(require_match(expected, file, {"update/", "o", "E", "W", "U"}), FileError,
                           says("missing:\n    'update/W'", "misshapen:\n    'update/E'") && !says("extra"));
}
