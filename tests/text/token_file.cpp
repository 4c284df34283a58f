#include <cstring>
#include <isogloss/text/token_file.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
const std::vector<Token> tokens{3, 1, 2, 1, 0, 3};

Vocabulary four() { return Vocabulary::from_words({"<unk>", "<eos>", "a", "b"}); }

std::string write(const std::string& path) {
    TokenFileWriter out(path, four());
    out.add(std::span(tokens).first(4));
    out.add(std::span(tokens).subspan(4));
    const auto info = out.commit(1, 2);
    REQUIRE(info.tokens == 6);
    REQUIRE(info.unknowns == 1);
    REQUIRE(info.lines == 2);
    return path;
}

// The bytes with a header that was changed and signed anew.
template <class Change> std::string with_header(std::string bytes, Change&& change) {
    text::detail::TokenFileHeader h;
    std::memcpy(static_cast<void*>(&h), bytes.data(), sizeof h);
    change(h);
    h.header_checksum = h.hash();
    std::memcpy(bytes.data(), &h, sizeof h);
    return bytes;
}
}  // namespace

TEST_CASE("Tokens come back from a token file", "[text][token_file]") {
    TemporaryDirectory scratch;
    const TokenFile file(write(scratch / "x.tokens"), four(), true);
    REQUIRE(std::vector<Token>(file.tokens().begin(), file.tokens().end()) == tokens);
    file::TokenHash hash;
    hash.add(tokens);
    REQUIRE(file.info().checksum == hash.value());
    REQUIRE(file.info().unknowns == 1);
    REQUIRE(file.info().lines == 2);
    REQUIRE(contents(scratch / "x.tokens").size() == 128 + 4 * 6);
    REQUIRE(scratch.entries() == 1);
}

TEST_CASE("Any changed or missing byte is noticed", "[text][token_file]") {
    TemporaryDirectory scratch;
    const std::string good = contents(write(scratch / "x.tokens"));
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        REQUIRE_THROWS_AS(TokenFile(put(scratch / "bad", bad), four(), true), FileError);
        REQUIRE_THROWS_AS(TokenFile(put(scratch / "bad", good.substr(0, i)), four(), true), FileError);
    }
    REQUIRE_THROWS_AS(TokenFile(put(scratch / "bad", good + "x"), four(), true), FileError);
    REQUIRE_THROWS_AS(TokenFile(put(scratch / "bad", good + "xxxx"), four(), true), FileError);
}

TEST_CASE("A token file that is refused says why", "[text][token_file]") {
    TemporaryDirectory scratch;
    const std::string good = contents(write(scratch / "x.tokens"));
    const auto open = [&](const std::string& bytes, bool verify = true) {
        return TokenFile(put(scratch / "bad", bytes), four(), verify);
    };
    REQUIRE_THROWS_AS(TokenFile(scratch / "none", four(), true), FileError);
    REQUIRE_THROWS_AS(open(""), FileError);
    REQUIRE_THROWS_AS(open("a text\n"), FileError);
    for (const std::string& bad : {good.substr(0, 100), good.substr(0, good.size() - 1), good + "x",
                                   with_header(good, [](auto& h) { h.tokens = ~std::uint64_t{0}; })})
        REQUIRE_THROWS_AS(open(bad), FileError);
    REQUIRE_THROWS_AS(open(with_header(good, [](auto& h) { h.version = 7; })), FileError);
    REQUIRE_THROWS_AS(open(with_header(good, [](auto& h) { h.order = 0x04030201; })), FileError);
    std::string bad = good;
    bad[128] = 2;
    REQUIRE_THROWS_AS(open(bad), FileError);
    REQUIRE(open(bad, false).tokens()[0] == 2);  // unverified: taken as it is

    // A writer that was given a token it should not have been given.
    TokenFileWriter out(scratch / "outside", four());
    out.add(std::vector<Token>{1, 2, 4});
    out.commit(0, 1);
    REQUIRE_THROWS_AS(TokenFile(scratch / "outside", four(), true), FileError);
}

TEST_CASE("A token file belongs to its vocabulary", "[text][token_file]") {
    TemporaryDirectory scratch;
    const auto path = write(scratch / "x.tokens");
    const auto smaller = Vocabulary::from_words({"<unk>", "<eos>", "a"});
    const auto other = Vocabulary::from_words({"<unk>", "<eos>", "b", "a"});
    REQUIRE_THROWS_AS(TokenFile(path, smaller, false), DataError);
    REQUIRE_THROWS_AS(TokenFile(path, other, false), DataError);
}
