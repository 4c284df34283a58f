// Hostile and damaged files: whatever the bytes, a FileError or a file that is right, never anything else.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/random.hpp>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {
std::string foreign(const std::string& json, std::size_t data_bytes) {
    std::string file(8, '\0');
    const std::uint64_t length = json.size();
    std::memcpy(file.data(), &length, 8);
    return file + json + std::string(data_bytes, 'x');
}

// Opens a file of these bytes; the message of the FileError, or "" where it is accepted.
std::string refusal(const std::string& path, const std::string& bytes, bool require_checksum) {
    put(path, bytes);
    try {
        const auto file = Safetensors::open(path, {.require_checksum = require_checksum});
        std::size_t sum = 0;  // touch every byte, for the sanitizers
        for (const TensorView& t : file.tensors())
            for (const std::byte b : t.bytes) sum += static_cast<std::size_t>(b);
        return sum == std::size_t(-1) ? "?" : "";
    } catch (const FileError& e) {
        return e.what();
    }
}

std::string small_file(const TemporaryDirectory& dir) {
    const std::vector<float> e{1, 2, 3};
    const std::vector<std::int64_t> n{-1};
    write_safetensors(dir / "small",
                      std::vector{tensor_view<float>("E", {3, 1}, e), tensor_view<std::int64_t>("n", {1}, n)},
                      {{"cell", "rnn"}});
    return contents(dir / "small");
}
}  // namespace

TEST_CASE("Every cut of a file, and everything appended, is refused", "[io][safetensors][hostile]") {
    TemporaryDirectory dir;
    const std::string whole = small_file(dir);
    REQUIRE(refusal(dir / "f", whole, true).empty());
    for (std::size_t n = 0; n < whole.size(); ++n)
        REQUIRE(!refusal(dir / "f", whole.substr(0, n), true).empty());
    for (std::size_t n = 1; n < 20; ++n)
        REQUIRE(refusal(dir / "f", whole + std::string(n, ' '), true).find("too long") != std::string::npos);
}

TEST_CASE("Every changed byte is noticed, whatever it becomes", "[io][safetensors][hostile]") {
    TemporaryDirectory dir;
    const std::string whole = small_file(dir);
    std::fstream file(dir / "small", std::ios::in | std::ios::out | std::ios::binary);
    long accepted = 0, refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        for (int change = 1; change < 256; ++change) {
            file.seekp(static_cast<std::streamoff>(i));
            file.put(static_cast<char>(whole[i] ^ change)).flush();
            try {
                Safetensors::open(dir / "small");
                ++accepted;
            } catch (const FileError&) {
                ++refused;
            }
        }
        file.seekp(static_cast<std::streamoff>(i));
        file.put(whole[i]).flush();
    }
    REQUIRE(accepted == 0);
    REQUIRE(refused == 255 * static_cast<long>(whole.size()));
    REQUIRE_NOTHROW(Safetensors::open(dir / "small"));
}

TEST_CASE("Hostile headers are refused with the reason", "[io][safetensors][hostile]") {
    TemporaryDirectory dir;
    const auto tensor = [](const std::string& shape, const std::string& offsets,
                           const std::string& dtype = "U8") {
        return R"("t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
    };
    struct Case {
        std::string json, reason;
        std::size_t data = 0;
    };
    const std::string deep(200000, '['), braces = [] {
        std::string s;
        for (int i = 0; i < 100000; ++i) s += R"({"a":)";
        return s;
    }();
    const std::string place = "expected to begin at";
    const std::vector<Case> cases{
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"\xEF\xBB\xBF{}", "not a JSON object"},
        {std::string("{}\0", 3), "not a JSON object"},
        {"{", "invalid JSON at byte"},
        {"{}{}", "invalid JSON at byte"},
        {"{\"\xFF\":1}", "invalid JSON"},
        {"{" + deep, "invalid JSON"},
        {R"({"a":)" + deep, "a list where none is allowed, at the key 'a'"},
        {braces, "tensor 'a': the key 'a' appears twice or is unknown"},
        {R"({"__metadata__":)" + braces, "an object where none is allowed"},
        {R"({"__metadata__":null})", "null where none"},
        {R"({"__metadata__":{"a":1}})", "a number where none is allowed, at the key 'a'"},
        {R"({"__metadata__":{"a":"1","a":"1"}})", "'a' appears twice"},
        {R"({"__metadata__":{},"__metadata__":{}})", "'__metadata__' appears twice"},
        {R"({"t":true})", "a boolean where none"},
        {R"({"t":"U8"})", "a string where none"},
        {R"({"t":{}})", "'t' lacks one of dtype"},
        {R"({"t":{"dtype":"U8","data_offsets":[0,0]}})", "'t' lacks one of"},
        {R"({"t":{"dtype":"U8","dtype":"U8"}})", "'dtype' appears twice"},
        {R"({"t":{"shape":"U8"}})", "a string where none"},
        {R"({"t":{"dtype":["U8"]}})", "a list where none"},
        {R"({"t":{"shape":[[1]]}})", "a list where none"},
        {"{" + tensor("[1]", "[0,1]", "COMPLEX") + "}", "unknown scalar type 'COMPLEX'", 1},
        {"{" + tensor("[-1]", "[0,1]") + "}", "a negative number", 1},
        {"{" + tensor("[1e2]", "[0,100]") + "}", "not whole", 100},
        {"{" + tensor("[1]", "[0]") + "}", "data_offsets holds 1", 1},
        {"{" + tensor("[1]", "[0,1,2]") + "}", "a number where none", 1},
        {"{" + tensor("[1]", "[1,0]") + "}", place, 1},
        {"{" + tensor("[2]", "[0,1]") + "}", place, 1},
        {"{" + tensor("[1]", "[0,2]", "F32") + "}", place, 2},
        {"{" + tensor("[1]", "[0,1]") + "}", "truncated or too long", 0},
        {"{" + tensor("[1]", "[0,1]") + "}", "truncated or too long", 2},
        {"{" + tensor("[1]", "[1,2]") + "}", place, 2},
        {"{" + tensor("[9223372036854775807]", "[0,9223372036854775807]") + "}", "truncated", 5},
        {"{" + tensor("[9223372036854775808]", "[0,1]") + "}", "a size too large to count", 1},
        {"{" + tensor("[4294967296,4294967296,0]", "[0,0]") + "}", "a countable number"},
        {"{" + tensor("[2305843009213693952]", "[0,0]", "F64") + "}", "a countable number"},
        {"{" + tensor("[2]", "[0,1]", "F4") + "}", "unknown scalar type 'F4'", 1},
        {"{" + tensor("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]") + "}",
         "more than 32 sizes", 1},
        {"{" + tensor("[1]", "[0,18446744073709551615]") + "}", place, 1},
        {"{" + tensor("[1]", "[18446744073709551615,0]") + "}", place, 1},
        {"{" + tensor("[1]", "[0,1]") + "," + tensor("[1]", "[1,2]") + "}", "'t' appears twice", 2},
        {"{" + tensor("[2]", "[0,2]") + R"(,"u":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", place, 3},
        {"{" + tensor("[2]", "[0,2]") + R"(,"u":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", place, 4},
        {"{" + tensor("[0]", "[1,1]") + R"(,"u":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", place, 2},
    };
    for (const Case& c : cases) {
        INFO(c.json.substr(0, 200));
        const std::string message = refusal(dir / "f", foreign(c.json, c.data), false);
        INFO(message);
        CHECK(message.find(dir / "f") != std::string::npos);
        CHECK(message.find(c.reason) != std::string::npos);
    }
}

TEST_CASE("A header longer than its file is not believed", "[io][safetensors][hostile]") {
    TemporaryDirectory dir;
    for (const std::uint64_t length : {std::uint64_t{3}, std::uint64_t{1} << 20, std::uint64_t{1} << 40,
                                       std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
        std::string bytes(8, '\0');
        std::memcpy(bytes.data(), &length, 8);
        REQUIRE(refusal(dir / "f", bytes + "{}", false).find("truncated or not a safetensors") !=
                std::string::npos);
    }
    REQUIRE(refusal(dir / "f", "", false).find("found 0 bytes") != std::string::npos);
    REQUIRE(refusal(dir / "f", "1234567", false).find("found 7 bytes") != std::string::npos);
}

TEST_CASE("Random damage behind the checksum is refused or harmless", "[io][safetensors][hostile]") {
    TemporaryDirectory dir;
    const std::string json =
        R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]},"c":{"dtype":"I64","shape":[0],"data_offsets":[11,11]}})";
    const std::string whole = foreign(json, 11);
    REQUIRE(refusal(dir / "f", whole, false).empty());
    const Random random(1, stream_of("damage"));
    const std::string spice = std::string("[]{},:\"0123456789eE+-.\\ un\xFF") + '\0';
    long refused = 0;
    Index at = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string bytes = whole;
        for (Index n = 1 + random.below(at++, 4); n > 0; --n) {
            const auto i = static_cast<std::size_t>(random.below(at++, static_cast<Index>(bytes.size())));
            const char c =
                spice[static_cast<std::size_t>(random.below(at++, static_cast<Index>(spice.size())))];
            switch (random.below(at++, 3)) {
                case 0:
                    bytes[i] = c;
                    break;
                case 1:
                    bytes.insert(i, 1, c);
                    break;
                default:
                    bytes.erase(i, 1);
            }
        }
        if (round % 2 == 0 && bytes.size() >= 19) {  // half of them with a header length that fits again
            const std::uint64_t length = bytes.size() - 19;
            std::memcpy(bytes.data(), &length, 8);
        }
        refused += !refusal(dir / "f", bytes, false).empty();
    }
    REQUIRE(refused > 2000);
    REQUIRE(refused < 4000);  // changes of names and values are harmless here, without a checksum
}
