/// @file catch.hpp  Catch2, version 3 or version 2, under the names of version 3.
#pragma once

#define CATCH_CONFIG_FAST_COMPILE  // a fifth of what an assertion costs to compile

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
using Impl::MatcherBase;
// NOLINTNEXTLINE(readability-identifier-naming): Catch2 chose the name
inline auto ContainsSubstring(const std::string& part, CaseSensitive::Choice c = CaseSensitive::Yes) {
    return Contains(part, c);
}
}  // namespace Catch::Matchers
#endif

#include <exception>
#include <string>
#include <vector>

/// Matches an exception whose message holds every one of the given parts:
///
///     REQUIRE_THROWS_MATCHES(open("none"), FileError, says("none", "does not exist"));
class Says : public Catch::Matchers::MatcherBase<std::exception> {
public:
    explicit Says(std::vector<std::string> parts) : parts_(std::move(parts)) {}

    bool match(const std::exception& error) const override {
        const std::string message = error.what();
        for (const auto& part : parts_)
            if (message.find(part) == std::string::npos) return false;
        return true;
    }

    std::string describe() const override {
        std::string all = "says";
        for (const auto& part : parts_) all += " \"" + part + "\"";
        return all;
    }

private:
    std::vector<std::string> parts_;
};

template <class... Parts> Says says(Parts... parts) { return Says({std::string(parts)...}); }
