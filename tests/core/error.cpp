#include <isogloss/error.hpp>
#include <string>

#include "catch.hpp"

using namespace isogloss;

TEST_CASE("A message is put together from its parts and names the library", "[core][error]") {
    const std::string what = message("node '", std::string("h"), "': width ", 600, " but ", 650.5);
    REQUIRE(what == "node 'h': width 600 but 650.5");
    REQUIRE(std::string(UsageError(what).what()) == "isogloss: " + what);
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
