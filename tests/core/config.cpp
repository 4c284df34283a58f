#include <filesystem>
#include <fstream>
#include <isogloss/config.hpp>
#include <iterator>
#include <regex>
#include <string>
#include <utility>

#include "catch.hpp"
#include "config_unit.hpp"

using namespace isogloss;

namespace {
std::string content(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    REQUIRE(in.good());
    return {std::istreambuf_iterator<char>(in), {}};
}
}  // namespace

TEST_CASE("Units compiled for different machines live in one program and agree to rounding",
          "[core][config]") {
    const UnitResult here = train_in_this_unit(), portable = train_in_portable_unit();
    CAPTURE(here.configuration, portable.configuration);
    const bool same = std::string(here.configuration) == portable.configuration;
#if defined(__AVX__)
    REQUIRE(!same);
#endif
    REQUIRE((here.kernel == portable.kernel) == same);  // symbols of their own
    REQUIRE(here.losses.size() == portable.losses.size());
    for (std::size_t i = 0; i < here.losses.size(); ++i)
        CHECK(here.losses[i] == Approx(portable.losses[i]).epsilon(1e-4));
    CHECK(here.losses.back() < here.losses.front());
}

TEST_CASE("The version is the project's", "[core][config]") {
    const std::string version = ISOGLOSS_VERSION;
    REQUIRE(version ==
            message(ISOGLOSS_VERSION_MAJOR, ".", ISOGLOSS_VERSION_MINOR, ".", ISOGLOSS_VERSION_PATCH));
    const std::pair<const char*, std::string> places[] = {
        {"CMakeLists.txt", "project(isogloss VERSION " + version + " "},
        {"pyproject.toml", "\nversion = \"" + version + "\"\n"},
        {"CITATION.cff", "\nversion: " + version + "\n"},
        {"packaging/vcpkg/vcpkg.json", "\"" + version + "\""}};
    for (const auto& [file, line] : places) {
        CAPTURE(file);
        CHECK(content(std::filesystem::path(ISOGLOSS_SOURCE_DIR) / file).find(line) != std::string::npos);
    }
    CHECK(std::string(configuration())
              .rfind("v" + std::regex_replace(version, std::regex("[.]"), "_") + "_", 0) == 0);
}

TEST_CASE("Every header opens the namespace of the configuration", "[core][config]") {
    // Without config.hpp before it `inline ISOGLOSS_CONFIGURATION` would be a namespace of that very name.
    const auto headers = std::filesystem::path(ISOGLOSS_SOURCE_DIR) / "include" / "isogloss";
    int opened = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(headers)) {
        if (file.path().extension() != ".hpp" || file.path().filename() == "config.hpp") continue;
        CAPTURE(file.path().string());
        const std::string text = content(file.path());
        CHECK(!std::regex_search(
            text, std::regex("(^|\n)namespace isogloss(::[a-z_]+)* \\{(?! inline namespace)")));
        const auto at = text.find("namespace isogloss { inline namespace ISOGLOSS_CONFIGURATION {");
        if (at == std::string::npos) continue;
        ++opened;
        CHECK(text.rfind("#include <isogloss/", at) != std::string::npos);
    }
    CHECK(opened > 50);
}
