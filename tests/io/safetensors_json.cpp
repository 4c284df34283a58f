#include <isogloss/io/safetensors_json.hpp>
#include <string>

#include "catch.hpp"

using namespace isogloss;
using namespace isogloss::io::detail;
using io::DType;

TEST_CASE("Strings become JSON, if they are UTF-8", "[io][json]") {
    CHECK(json_string("E") == R"("E")");
    CHECK(json_string("a\"b\\c\n") == R"("a\"b\\c\n")");
    CHECK(json_string("größe") == "\"größe\"");
    CHECK_THROWS_MATCHES(json_string("gr\xF6\xDF"), DataError, says("is not UTF-8", "convert it"));
}

TEST_CASE("The JSON of a header is read in the order it has, or its first fault named", "[io][json]") {
    SafetensorsHeader h;
    CHECK(read_json(R"({"b":{"dtype":"F64","shape":[2,3],"data_offsets":[8,56]},"__metadata__":{"k":"v"},)"
                    R"("a":{"data_offsets":[0,8],"shape":[],"dtype":"I64"}})",
                    h) == "");
    REQUIRE(h.entries.size() == 2);
    CHECK(h.entries[0].tensor.name == "b");
    CHECK(h.entries[0].tensor.dtype == DType::f64);
    CHECK(h.entries[0].tensor.shape == std::vector<Index>{2, 3});
    CHECK(h.entries[0].begin == 8);
    CHECK(h.entries[0].end == 56);
    CHECK(h.entries[1].tensor.dtype == DType::i64);
    CHECK(h.entries[1].tensor.shape.empty());
    CHECK(h.metadata.at("k") == "v");

    const auto fault = [](const char* json) {
        SafetensorsHeader header;
        return read_json(json, header);
    };
    CHECK(fault("{\"a\":") == "invalid JSON at byte 6 of the header");
    CHECK(fault(R"({"a":{"dtype":"F32","shape":[1]}})") ==
          "tensor 'a' lacks one of dtype, shape and data_offsets");
    CHECK(fault(R"({"a":{"dtype":"F33"}})") == "tensor 'a': unknown scalar type 'F33'");
    CHECK(fault(R"({"a":{"shape":[-1]}})").rfind("a negative number where none is allowed", 0) == 0);
    CHECK(fault(R"({"a":{"shape":[1.5]}})").rfind("a number that is not whole", 0) == 0);
    CHECK(fault(R"({"a":1})").rfind("a number where none is allowed", 0) == 0);
    CHECK(fault(R"({"__metadata__":{"k":"v","k":"w"}})") == "the metadata 'k' appears twice");
}
