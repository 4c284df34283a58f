#include <cmath>
#include <cstdint>
#include <isogloss/error.hpp>
#include <limits>
#include <string>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A message is put together from its parts and names the library", "[core][error]") {
    const std::string what = message("node '", std::string("h"), "': width ", 600, " but ", 650.5);
    REQUIRE(what == "node 'h': width 600 but 650.5");
    REQUIRE(std::string(UsageError(what).what()) == "isogloss: " + what);
    UsageError of_parts("node '", std::string("h"), "': width ", 600, " but ", 650.5);
    REQUIRE(std::string(of_parts.what()) == "isogloss: " + what);
    REQUIRE(of_parts.text() == what);
    const UsageError copy(of_parts);  // the parts of a message do not take an error for one of them
    REQUIRE(std::string(copy.what()) == of_parts.what());
}

TEMPLATE_TEST_CASE("Every error is caught as the library's and as the standard's", "[core][error]",
                   UsageError, DataError, FileError, NumericError) {
    REQUIRE_THROWS_MATCHES(throw TestType("found 1, expected 2"), Error,
                           says("isogloss: ", "found 1", "expected 2"));
    REQUIRE_THROWS_MATCHES(throw TestType("found 1"), std::runtime_error, says("isogloss: found 1"));
}

TEST_CASE("The kinds of error are told apart", "[core][error]") {
    const auto caught = [](auto thrower) {
        try {
            thrower();
        } catch (const UsageError&) {
            return "graph";
        } catch (const DataError&) {
            return "data";
        } catch (const FileError&) {
            return "file";
        } catch (const NumericError&) {
            return "numeric";
        }
        return "none";
    };
    REQUIRE(caught([] { throw UsageError("x"); }) == std::string("graph"));
    REQUIRE(caught([] { throw DataError("x"); }) == std::string("data"));
    REQUIRE(caught([] { throw FileError("x"); }) == std::string("file"));
    REQUIRE(caught([] { throw NumericError("x"); }) == std::string("numeric"));
}

namespace {
// What `require` says of a value, without "isogloss: "; "" where it is content.
template <class E = UsageError, class V, class... Ends> std::string refused(V value, const Ends&... ends) {
    try {
        require<E>("who", "x", value, ends...);
    } catch (const E& e) {
        return std::string(e.text());
    }
    return "";
}
}  // namespace

TEST_CASE("An option out of range is refused with its name, its value and the range", "[core][error]") {
    REQUIRE(refused(0, 1) == "who: found x = 0, expected at least 1");
    REQUIRE(refused(-1, 0, 7) == "who: found x = -1, expected 0 to 7");
    REQUIRE(refused(8, 0, 7) == "who: found x = 8, expected 0 to 7");
    REQUIRE(refused(-0.5, 0) == "who: found x = -0.5, expected a finite number of at least 0");
    REQUIRE(refused(0.0, Exclusive{0}) == "who: found x = 0, expected a finite number above 0");
    REQUIRE(refused(1.5, 0, 1) == "who: found x = 1.5, expected 0 to 1");
    REQUIRE(refused(1.0, 0, Exclusive{1}) == "who: found x = 1, expected at least 0 and below 1");
    REQUIRE(refused(0.0, Exclusive{0}, 1) == "who: found x = 0, expected above 0 and at most 1");
    REQUIRE(refused(2.0, Exclusive{0}, Exclusive{1}) == "who: found x = 2, expected above 0 and below 1");
    REQUIRE(refused(1 + 1e-9, 0, 1) == "who: found x = 1.000000001, expected 0 to 1");
    REQUIRE(refused(0.1f, 1.0f, 2.0f) == "who: found x = 0.1, expected 1 to 2");
    REQUIRE(refused<DataError>(std::uint64_t{5}, 6) == "who: found x = 5, expected at least 6");
}

TEST_CASE("Ends of a range belong to it unless they are exclusive, and no range holds what is not finite",
          "[core][error]") {
    REQUIRE(refused(0, 0, 7) + refused(7, 0, 7) + refused(0.0, 0) + refused(1.0, 0, 1) == "");
    REQUIRE(refused(std::numeric_limits<std::int64_t>::max(), 1) == "");
    REQUIRE(refused(std::numeric_limits<double>::max(), 1) == "");
    REQUIRE(refused(std::nextafter(1.0, 0.0), 0, Exclusive{1}) + refused(0.5f, Exclusive{0}, 1.0f) == "");
    for (const double x : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        CHECK(refused(x, 0) != "");
        CHECK(refused(x, -HUGE_VAL, HUGE_VAL) != "");
        CHECK(refused(static_cast<float>(x), Exclusive{0}, 1.0f) != "");
    }
}
