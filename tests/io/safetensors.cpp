#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <isogloss/io/safetensors.hpp>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "files.hpp"

using namespace isogloss;
using namespace isogloss::io;

namespace {
const std::vector<float> table{0.5f, -1, 3e38f, 1e-45f, 0, std::numeric_limits<float>::quiet_NaN()};
const std::vector<double> moments{1.0 / 3, -0.0};
const std::uint64_t step = 18446744073709551615u;
const std::string words = "the\nde\xC3\xA9j\xC3\xA0\n";

std::vector<TensorView> tensors() {
    return {text_view("vocabulary", words), tensor_view<float>("E", {2, 3}, table),
            tensor_view<double>("update/E.m", {2}, moments),
            tensor_view<std::uint64_t>("step", {}, {&step, 1}),
            tensor_view<std::int32_t>("empty", {4, 0}, {})};
}
const std::map<std::string, std::string> metadata{{"cell", "lstm"}, {"quo\"te\\", "line\nend \xE2\x82\xAC"}};

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    const auto x = std::as_bytes(std::span(a)), y = std::as_bytes(std::span(b));
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// A file of another program, by hand: header length, header, data.
std::string foreign(const std::string& json, std::size_t data_bytes = 0) {
    std::string file(8, '\0');
    const std::uint64_t length = json.size();
    std::memcpy(file.data(), &length, 8);
    return file + json + std::string(data_bytes, 'x');
}
constexpr SafetensorsOptions any_origin{.require_checksum = false};
}  // namespace

TEST_CASE("What is written is read back bit by bit", "[io][safetensors]") {
    TemporaryDirectory dir;
    write_safetensors(dir / "m.safetensors", tensors(), metadata);
    REQUIRE(dir.entries() == 1);
    const auto file = Safetensors::open(dir / "m.safetensors");
    REQUIRE(file.has_checksum());
    REQUIRE(file.metadata() == metadata);
    REQUIRE(file.names() == std::vector<std::string>{"update/E.m", "step", "E", "empty", "vocabulary"});

    std::vector<float> e(6);
    file.read<float>("E", {2, 3}, e);
    REQUIRE(same_bits(e, table));  // NaN and denormals too
    REQUIRE(same_bits(file.values<float>("E"), table));
    std::vector<double> m(2);
    file.read<double>("update/E.m", m);
    REQUIRE(same_bits(m, moments));
    REQUIRE(file.scalar<std::uint64_t>("step") == step);
    REQUIRE(file.characters("vocabulary") == words);
    REQUIRE(file.find("empty")->shape == std::vector<Index>{4, 0});
    REQUIRE(file.values<std::int32_t>("empty").empty());
    REQUIRE(file.find("nothing") == nullptr);
    for (const TensorView& t : file.tensors()) REQUIRE(&file.at(t.name) == &t);
}

TEST_CASE("Tensors made while they are written give the same file, of exactly as many bytes",
          "[io][safetensors]") {
    TemporaryDirectory dir;
    write_safetensors(dir / "m", tensors(), {{"a", "b"}});
    const auto sources = [] {
        std::vector<TensorSource> all;
        for (const TensorView& t : tensors())
            all.push_back({{t.name, t.dtype, t.shape}, [bytes = t.bytes](TensorSink& sink) {
                               for (std::size_t i = 0; i < bytes.size(); ++i) sink.write(bytes.subspan(i, 1));
                           }});
        return all;
    };
    stream_safetensors(dir / "streamed", sources(), {{"a", "b"}});
    REQUIRE(contents(dir / "streamed") == contents(dir / "m"));
    for (const bool more : {false, true}) {
        auto wrong = sources();
        const auto of_E =
            std::find_if(wrong.begin(), wrong.end(), [](const auto& t) { return t.spec.name == "E"; });
        of_E->write = [more, write = of_E->write, bytes = tensors()[0].bytes](TensorSink& sink) {
            if (more) write(sink);
            sink.write(bytes.first(1));
        };
        REQUIRE_THROWS_MATCHES(stream_safetensors(dir / "streamed", std::move(wrong)), DataError,
                               says("'E'", more ? " = 25" : " = 1", "expected 24"));
        REQUIRE(contents(dir / "streamed") == contents(dir / "m"));
        REQUIRE(dir.entries() == 2);
    }
}

TEST_CASE("A mapped file is as one that was read, and keeps its bytes", "[io][safetensors]") {
    TemporaryDirectory dir;
    write_safetensors(dir / "m", tensors(), {{"a", "b"}});
    const auto read = Safetensors::open(dir / "m");
    std::shared_ptr<const void> owner;
    std::span<const std::byte> bytes;
    {
        const auto file = Safetensors::map(dir / "m");
        REQUIRE(file.names() == read.names());
        REQUIRE(file.metadata() == read.metadata());
        REQUIRE(file.has_checksum());
        for (const TensorView& t : read.tensors())
            REQUIRE(std::ranges::equal(file.at(t.name).bytes, t.bytes));
        owner = file.owner();
        bytes = file.at("E").bytes;
    }
    put(dir / "m", "replaced");  // Windows keeps what is open
    REQUIRE(std::ranges::equal(bytes, read.at("E").bytes));
    owner.reset();
    write_safetensors(dir / "m", tensors());
    std::string damaged = contents(dir / "m");
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    REQUIRE_THROWS_MATCHES(Safetensors::map(put(dir / "n", damaged)), FileError, says(dir / "n", "damaged"));
    REQUIRE_THROWS_MATCHES(Safetensors::map(put(dir / "n", damaged.substr(0, 100))), FileError,
                           says(dir / "n"));
    REQUIRE_THROWS_MATCHES(Safetensors::map(put(dir / "n", "")), FileError, says("found 0 bytes"));
    REQUIRE_THROWS_MATCHES(Safetensors::map(dir / "none"), FileError, says("none"));
    write_safetensors(dir / "empty", {});
    REQUIRE(Safetensors::map(dir / "empty").tensors().empty());
}

TEST_CASE("The layout is the published one", "[io][safetensors]") {
    TemporaryDirectory dir;
    const std::vector<std::int32_t> numbers{1, -2};
    write_safetensors(dir / "m", std::vector{tensor_view<std::int32_t>("n", {2, 1}, numbers)}, {{"a", "b"}});
    const std::string bytes = contents(dir / "m");
    const std::string head = R"({"__metadata__":{"isogloss.checksum":")",
                      digits = bytes.substr(8 + head.size(), 16);
    std::string json = head + digits + R"(","isogloss.format":"1","a":"b"},)" +
                       R"("n":{"dtype":"I32","shape":[2,1],"data_offsets":[0,8]}})";
    json.append(184 - json.size(), ' ');  // to the next multiple of 64, less the 8 bytes before it
    const std::string data("\x01\0\0\0\xFE\xFF\xFF\xFF", 8);
    REQUIRE(bytes == std::string("\xB8\0\0\0\0\0\0\0", 8) + json + data);

    std::string zeroed = bytes;  // the checksum's definition
    zeroed.replace(8 + head.size(), 16, 16, '0');
    file::Crc64 crc;
    crc.add(zeroed);
    REQUIRE(digits == file::hex16(crc.value()));
}

TEST_CASE("The bytes of a file are those of every version before", "[io][safetensors]") {
    // As recorded from the first version of the format, names and metadata full of what JSON escapes.
    const std::string header =
        R"({"__metadata__":{"isogloss.checksum":"87a62edca73f1edc","isogloss.format":"1",)"
        R"("a\tkey":"v\u0000/<>&'\b\f\r","z":"last",)"
        "\"\xE2\x80\xA8\":\"\"},"
        R"("":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
        R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[8,8]},)"
        R"("E/\"w\"\\\n\u0001)"
        "\x7F \xC3\xA9\xF0\x9F\x98\x80"
        R"(":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
        R"("bytes":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}})";
    std::string expected = std::string("\x78\1\0\0\0\0\0\0", 8) + header;
    expected.resize(8 + 0x178, ' ');
    const std::vector<double> d{0.1};
    const std::vector<float> e{1, -2.5f, 0.1f, 3, 4, 5};
    const std::vector<std::uint8_t> u{1, 2, 3};
    const std::vector<std::int64_t> none;
    expected.append(reinterpret_cast<const char*>(d.data()), 8)
        .append(reinterpret_cast<const char*>(e.data()), 24)
        .append("\1\2\3");
    TemporaryDirectory dir;
    write_safetensors(dir / "f",
                      std::vector<TensorView>{
                          tensor_view<std::uint8_t>("bytes", {3}, u),
                          tensor_view<float>("E/\"w\"\\\n\x01\x7F \xC3\xA9\xF0\x9F\x98\x80", {2, 3}, e),
                          tensor_view<double>("", {}, d), tensor_view<std::int64_t>("none", {0, 7}, none)},
                      {{"z", "last"}, {"a\tkey", std::string("v\0/<>&'\b\f\r", 10)}, {"\xE2\x80\xA8", ""}});
    REQUIRE(contents(dir / "f") == expected);
}

TEST_CASE("Reading asks for the exact name, type and shape", "[io][safetensors]") {
    TemporaryDirectory dir;
    write_safetensors(dir / "m", tensors());
    const auto file = Safetensors::open(dir / "m");
    std::vector<float> e(6);
    std::vector<double> d(6);
    const auto has = [&](const auto&... parts) { return says(dir / "m", parts...); };
    REQUIRE_THROWS_MATCHES(file.read<float>("F", {2, 3}, e), FileError,
                           has("no tensor 'F'", "its 5", "'E'", "'vocabulary'"));
    REQUIRE_THROWS_MATCHES(file.read<double>("E", {2, 3}, d), FileError, has("'E'", "F32", "expected F64"));
    REQUIRE_THROWS_MATCHES(file.read<float>("E", {3, 2}, e), FileError, has("'E'", "[2, 3]", "[3, 2]"));
    REQUIRE_THROWS_MATCHES(file.read<float>("E", e), FileError, has("[2, 3]", "expected F32 [6]"));
    REQUIRE_THROWS_MATCHES(file.scalar<float>("E"), FileError, has("expected F32 []"));
    REQUIRE_THROWS_MATCHES(file.characters("E"), FileError, has("expected U8"));
    const std::vector<std::uint8_t> square(4, 'a');
    write_safetensors(dir / "square", std::vector{tensor_view<std::uint8_t>("s", {2, 2}, square)});
    REQUIRE_THROWS_MATCHES(Safetensors::open(dir / "square").characters("s"), FileError,
                           says("'s'", "[2, 2]", "expected U8 [4]"));
    e.resize(5);
    REQUIRE_THROWS_MATCHES(file.read<float>("E", {2, 3}, e), DataError, says("'E'", "room for elements = 5"));
}

TEST_CASE("What cannot be stored is refused before anything is written", "[io][safetensors]") {
    TemporaryDirectory dir;
    put(dir / "m", "old");
    const auto write = [&](const std::vector<TensorView>& t,
                           const std::map<std::string, std::string>& m = {}) {
        write_safetensors(dir / "m", t, m);
    };
    const auto e = tensor_view<float>("E", {6}, table);
    auto named = [&](std::string name) {
        auto t = e;
        t.name = std::move(name);
        return t;
    };
    REQUIRE_THROWS_MATCHES(write({e, named("F"), e}), DataError, says("'E'", "twice"));
    REQUIRE_THROWS_MATCHES(write({named("__metadata__")}), DataError, says("reserved"));
    REQUIRE_THROWS_MATCHES(write({named("\xFFz")}), DataError, says("not UTF-8"));
    REQUIRE_THROWS_MATCHES(write({e}, {{"k", "\xC3"}}), DataError, says("not UTF-8"));
    auto wrong = e;
    wrong.shape = {7};
    std::string lengthy;
    lengthy.resize(max_safetensors_header, 'v');
    REQUIRE_THROWS_MATCHES(write({wrong}), DataError, says("'E'", " = 24", "expected 28"));
    REQUIRE_THROWS_MATCHES(write({e}, {{"k", lengthy}}), DataError, says("header", "100000000"));
    REQUIRE(contents(dir / "m") == "old");
    REQUIRE_THROWS_MATCHES(write_safetensors(dir / "none/m", {}), FileError, says("No such file"));
    REQUIRE(dir.entries() == 1);
}

TEST_CASE("Files of other programs are read on request only", "[io][safetensors]") {
    TemporaryDirectory dir;
    const std::string json =
        R"({"b":{"data_offsets":[8,10],"shape":[1],"dtype":"BF16"}, "__metadata__":{"format":"pt"},
        "a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   )";
    put(dir / "m", foreign(json, 10));
    REQUIRE_THROWS_MATCHES(Safetensors::open(dir / "m"), FileError,
                           says(dir / "m", "found no checksum", "require_checksum = false"));
    const auto file = Safetensors::open(dir / "m", any_origin);
    REQUIRE_FALSE(file.has_checksum());
    REQUIRE(file.names() == std::vector<std::string>{"a", "b"});
    REQUIRE(file.metadata().at("format") == "pt");
    REQUIRE(file.at("b").dtype == DType::bf16);
    REQUIRE(file.at("b").bytes.size() == 2);
}

TEST_CASE("Types that no number here has are listed, and refused where numbers are asked for",
          "[io][safetensors]") {
    TemporaryDirectory dir;
    const std::string json =
        R"({"a":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[8,10]},)"
        R"("c":{"dtype":"BOOL","shape":[3],"data_offsets":[10,13]},"d":{"dtype":"F32","shape":[],"data_offsets":[13,17]}})";
    put(dir / "m", foreign(json, 17));
    const auto file = Safetensors::open(dir / "m", any_origin);
    REQUIRE(file.names() == std::vector<std::string>{"a", "b", "c", "d"});
    REQUIRE(file.at("b").dtype == DType::f8_e4m3);
    REQUIRE(file.at("c").bytes.size() == 3);
    REQUIRE(std::isfinite(file.scalar<float>("d")));
    REQUIRE_THROWS_MATCHES(file.values<float>("a"), FileError, says("'a'", "C64", "expected F32"));
    REQUIRE_THROWS_MATCHES(file.values<std::uint8_t>("b"), FileError, says("'b'", "F8_E4M3", "expected U8"));
    // They are carried as bytes, and the file that is written has the larger elements first.
    write_safetensors(dir / "n", file.tensors());
    const auto again = Safetensors::open(dir / "n");
    REQUIRE(again.names() == std::vector<std::string>{"a", "d", "b", "c"});
    REQUIRE(std::ranges::equal(again.at("c").bytes, file.at("c").bytes));
}

TEST_CASE("A file that claims to be ours and is not is refused under either option", "[io][safetensors]") {
    TemporaryDirectory dir;
    for (const char* const json :
         {R"({"__metadata__":{"isogloss.format":"1","isogloss.checksum":"0000000000000000"}})",
          R"({"__metadata__":{"isogloss.format":"1"}})",
          R"({"__metadata__":{"isogloss.checksum":"0000000000000000"}})",
          R"({"__metadata__":{"isogloss.checksum":"000000000000000","isogloss.format":"1"}})",
          R"({"__metadata__":{"isogloss.checksum":"\u0030000000000000000","isogloss.format":"1"}})"}) {
        put(dir / "m", foreign(json));
        REQUIRE_THROWS_MATCHES(Safetensors::open(dir / "m", any_origin), FileError,
                               says("its checksum is wrong"));
    }
}

TEST_CASE("A newer format is told from a damaged file", "[io][safetensors]") {
    TemporaryDirectory dir;
    write_safetensors(dir / "m", tensors());
    std::string bytes = contents(dir / "m");
    const auto version = bytes.find(R"("isogloss.format":"1")") + 19;
    bytes[version] = '2';
    REQUIRE_THROWS_MATCHES(Safetensors::open(put(dir / "n", bytes)), FileError, says("damaged"));
    const std::size_t digits = 8 + safetensors_opening.size();
    bytes.replace(digits, 16, 16, '0');
    file::Crc64 crc;
    crc.add(bytes);
    bytes.replace(digits, 16, file::hex16(crc.value()));
    REQUIRE_THROWS_MATCHES(Safetensors::open(put(dir / "n", bytes)), FileError,
                           says("format '2'", "newer version"));
}
