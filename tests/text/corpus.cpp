#include <cmath>
#include <cstdlib>
#include <fstream>
#include <isogloss/text/corpus.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"

using namespace isogloss;
using namespace isogloss::text;

namespace {
using Stream = std::vector<Token>;

Stream tokens_of(const Corpus& c) { return {c.tokens().begin(), c.tokens().end()}; }

Corpus read(const std::string& text, const Vocabulary& v, CorpusOptions options = {}) {
    std::istringstream in(text);
    return Corpus::read_stream(in, "memory", v, options);
}

// 0 the, 1 <eos>, 2 cat, 3 mat, 4 <unk>
Vocabulary small() {
    return Vocabulary::from_words({"the", "<eos>", "cat", "mat", "<unk>"}, {4, 2, 1, 1, 0});
}

std::string data(const std::string& name) {
    const char* const root = std::getenv("ISOGLOSS_DATA");
    return (root ? std::string(root) : std::string(ISOGLOSS_SOURCE_DIR "/../shared/data")) + "/" + name;
}
bool missing(const std::string& name) {
    if (std::ifstream(data(name))) return false;
    WARN("not checked: '" << data(name)
                          << "' is not there; set ISOGLOSS_DATA to the folder of the data sets");
    return true;
}
}  // namespace

TEST_CASE("A text becomes tokens", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto path = put(scratch / "x.txt", "the dog\n\nthe <unk> mat");
    const auto c = Corpus::read(path, small());
    REQUIRE(tokens_of(c) == Stream{0, 4, 1, 1, 0, 4, 3, 1});
    REQUIRE(c.size() == 8);
    REQUIRE(c.unknowns() == 2);
    REQUIRE(c.lines() == 3);
    REQUIRE(c.vocabulary_size() == 5);
    REQUIRE(c.source() == path);
    REQUIRE(tokens_of(read("the dog\r\n\r\nthe <unk> mat\r\n", small())) == tokens_of(c));
}

TEST_CASE("Line ends are tokens only where the vocabulary says so", "[text][corpus]") {
    const auto v = Vocabulary::from_words({"a", "b"}, {}, {.eos_per_line = false});
    REQUIRE(tokens_of(read("a b\n\nb", v)) == Stream{0, 1, 1});
    const auto c = Vocabulary::from_words({"a", "\n", " ", "\u00E9"}, {}, {.level = Level::character});
    REQUIRE(tokens_of(read("a \u00E9\na", c)) == Stream{0, 2, 3, 1, 0, 1});
}

TEST_CASE("A text that ends in empty lines has the words before them, in memory and encoded",
          "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = Vocabulary::from_words({"a", "b"}, {}, {.eos_per_line = false});
    std::string text;
    for (int i = 0; i < 70'000; ++i) text += "a ";  // more than are kept before they are written
    put(scratch / "x.txt", text + "\n\n\n");
    REQUIRE(Corpus::encode(scratch / "x.txt", scratch / "x.tokens", v).tokens == 70'000);
    REQUIRE(Corpus::map(scratch / "x.tokens", v).size() == 70'000);
    REQUIRE(Corpus::read(scratch / "x.txt", v).size() == 70'000);
}

TEST_CASE("Bare tokens are a corpus", "[text][corpus]") {
    const auto c = Corpus::from_tokens({0, 2, 1}, 3);
    REQUIRE(c.size() == 3);
    REQUIRE(c.lines() == 0);
    REQUIRE_THROWS_AS(Corpus::from_tokens({0, 3}, 3), DataError);
    REQUIRE_THROWS_AS(Corpus::from_tokens({-1}, 3, "task"), DataError);
    REQUIRE_THROWS_AS(Corpus::from_tokens({}, 3), DataError);
}

TEST_CASE("A token file without tokens is no corpus", "[text][corpus]") {
    TemporaryDirectory scratch;
    TokenFileWriter(scratch / "x.tokens", small()).commit(0, 0);
    REQUIRE_THROWS_AS(Corpus::map(scratch / "x.tokens", small()), DataError);
}

TEST_CASE("The checksum is that of the tokens, wherever they are", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = small();
    const auto path = put(scratch / "x.txt", "the cat\nthe mat\n");
    const auto info = Corpus::encode(path, scratch / "x.tokens", v);
    const auto in_memory = Corpus::read(path, v), mapped = Corpus::map(scratch / "x.tokens", v);
    file::TokenHash hash;
    hash.add(Stream{0, 2, 1, 0, 3, 1});
    REQUIRE(in_memory.checksum() == hash.value());
    REQUIRE(mapped.checksum() == hash.value());
    REQUIRE(info.checksum == hash.value());
    REQUIRE(Corpus::from_tokens({0, 2, 1, 0, 3, 1}, 5).checksum() == hash.value());
    REQUIRE(Corpus::from_tokens({0, 2, 1, 0, 1, 3}, 5).checksum() != hash.value());
}

TEST_CASE("A mapped corpus equals the one in memory", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = small();
    std::string text;
    for (int i = 0; i < 60'000; ++i) text += i % 7 ? "the cat " : i % 3 ? "the dog\n" : "mat\n\n";
    const auto path = put(scratch / "x.txt", text);
    const auto info = Corpus::encode(path, scratch / "x.tokens", v);
    const auto a = Corpus::read(path, v), b = Corpus::map(scratch / "x.tokens", v),
               c = Corpus::map(scratch / "x.tokens", v, {.verify = false});
    REQUIRE(a.size() > 100'000);  // more than the writer holds at once
    for (const auto* mapped : {&b, &c}) {
        REQUIRE(tokens_of(*mapped) == tokens_of(a));
        REQUIRE(mapped->unknowns() == a.unknowns());
        REQUIRE(mapped->lines() == a.lines());
        REQUIRE(mapped->checksum() == a.checksum());
        REQUIRE(mapped->vocabulary_size() == 5);
        REQUIRE(mapped->source() == scratch / "x.tokens");
    }
    REQUIRE(info.tokens == a.size());
    REQUIRE(info.unknowns == a.unknowns());
    REQUIRE(info.lines == a.lines());
    auto batches = b.batches({.time = 35, .batch = 20});
    auto other = batches.begin();
    Index compared = 0;
    for (auto batch : a.batches({.time = 35, .batch = 20})) {
        REQUIRE(std::equal(batch.input.data, batch.input.data + batch.input.size(), other->input.data));
        REQUIRE(std::equal(batch.target.data, batch.target.data + batch.target.size(), other->target.data));
        ++other;
        ++compared;
    }
    REQUIRE(other == batches.end());
    REQUIRE(compared == batches.count());
}

TEST_CASE("Memory does not grow with a text that is encoded and mapped", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = small();
    std::string text;
    for (int i = 0; i < 50'000; ++i) text += "the cat the mat\n";
    put(scratch / "short.txt", text);
    put(scratch / "long.txt", text + text + text + text);
    // As many calls of operator new for 1,000,000 tokens as for 250,000: no buffer grows with the text. All tokens of
    // the long one would take 4,000,000 bytes.
    const auto calls = [&](const std::string& name) {
        const auto before = allocations();
        const MostBytes encoding;
        Corpus::encode(scratch / (name + ".txt"), scratch / (name + ".tokens"), v);
        REQUIRE(encoding.most() < 2'000'000);
        const auto encoded = allocations();
        const MostBytes mapping;
        Index predicted = 0;
        const auto corpus = Corpus::map(scratch / (name + ".tokens"), v);
        for (const auto& batch : corpus.batches({.time = 35, .batch = 20})) predicted += batch.predicted;
        REQUIRE(predicted >= 249'980);
        REQUIRE(mapping.most() < 2'000'000);
        return std::pair(encoded - before, allocations() - encoded);
    };
    calls("short");  // what is allocated once, in whatever order the tests run
    const auto few = calls("short"), many = calls("long");
    REQUIRE(many.first <= few.first + 2);  // the names are of different length
    REQUIRE(many.second <= few.second + 2);
}

TEST_CASE("Batches keep their tokens alive", "[text][corpus]") {
    TemporaryDirectory scratch;
    put(scratch / "x.txt", "the cat the mat\n");
    Corpus::encode(scratch / "x.txt", scratch / "x.tokens", small());
    Index total = 0;
    for (auto batch : read("the cat the mat\n", small()).batches({.time = 2, .batch = 2}))
        total += batch.predicted;
    for (auto batch : Corpus::map(scratch / "x.tokens", small()).batches({.time = 2, .batch = 2}))
        total += batch.predicted;
    REQUIRE(total == 8);
}

TEST_CASE("A text that cannot be read is an error with file and line", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = small();
    const auto strict = Vocabulary::from_words({"a", "<eos>"});
    REQUIRE_THROWS_AS(Corpus::read(scratch / "none.txt", v), FileError);
    REQUIRE_THROWS_AS(Corpus::read(scratch.path().string(), v), FileError);
    REQUIRE_THROWS_AS(Corpus::read(put(scratch / "e.txt", ""), v), DataError);
    REQUIRE_THROWS_AS(read("a\na b\n", strict), DataError);
    REQUIRE_THROWS_AS(read("the\nthe \xF0\x9F\n", v), DataError);
    REQUIRE_THROWS_MATCHES(read("the\n123456\n", v, {.max_line_bytes = 5}), DataError, says("memory:2:"));
    const auto open = Vocabulary::from_words({"a"}, {}, {.eos_per_line = false});
    REQUIRE_THROWS_AS(read("\n \n", open), DataError);
}

TEST_CASE("Penn Treebank has the published counts", "[text][corpus][data]") {
    if (missing("ptb/ptb.train.txt")) return;
    const auto v = Vocabulary::from_file(data("ptb/ptb.train.txt"));
    REQUIRE(v.size() == 10'000);
    REQUIRE(v.has_unk());
    REQUIRE(v.word(0) == "the");
    const auto train = Corpus::read(data("ptb/ptb.train.txt"), v);
    REQUIRE(train.size() == 929'589);
    REQUIRE(train.lines() == 42'068);
    REQUIRE(train.unknowns() == v.count(v.unk()));
    REQUIRE(v.total() == train.size());
    REQUIRE(Corpus::read(data("ptb/ptb.valid.txt"), v).size() == 73'760);
    REQUIRE(Corpus::read(data("ptb/ptb.test.txt"), v).size() == 82'430);
    REQUIRE(Vocabulary::from_text(v.to_text()) == v);
}

TEST_CASE("WikiText-2 has the published counts", "[text][corpus][data]") {
    if (missing("wikitext-2/train.txt")) return;
    const auto v = Vocabulary::from_file(data("wikitext-2/train.txt"));
    REQUIRE(v.size() == 33'278);
    const auto train = Corpus::read(data("wikitext-2/train.txt"), v);
    REQUIRE(train.size() == 2'088'628);
    REQUIRE(v.total() == train.size());
    REQUIRE(Corpus::read(data("wikitext-2/valid.txt"), v).size() == 217'646);
    REQUIRE(Corpus::read(data("wikitext-2/test.txt"), v).size() == 245'569);
    // A corpus is decoded to its text, but for the white space.
    const auto decoded = v.decode(train.tokens());
    REQUIRE(read(decoded, v).checksum() == train.checksum());
}

TEST_CASE("A part of a corpus is what the same tokens alone would be", "[text][corpus]") {
    TemporaryDirectory scratch;
    const auto v = small();
    const std::string text = "the dog\n\nthe <unk> mat\ncat\n";
    const auto whole = read(text, v);  // the <unk> <eos> | <eos> the <unk> | mat <eos> cat <eos>
    const auto part = whole.part(3, 6, v);
    REQUIRE(tokens_of(part) == Stream{1, 0, 4});
    REQUIRE(part.size() == 3);
    REQUIRE(part.unknowns() == 1);
    REQUIRE(part.lines() == 1);
    REQUIRE(part.checksum() == Corpus::from_tokens({1, 0, 4}, 5).checksum());
    REQUIRE(part.source() == whole.source());
    const auto all = whole.part(0, whole.size(), v);
    REQUIRE(all.checksum() == whole.checksum());
    REQUIRE(all.unknowns() == whole.unknowns());
    REQUIRE(all.lines() == whole.lines());
    // Without a type for either there are none to count.
    const auto bare = Vocabulary::from_words({"a", "b"}, {}, {.eos_per_line = false, .unk = ""});
    const auto plain = read("a b\nb", bare).part(0, 2, bare);
    REQUIRE(tokens_of(plain) == Stream{0, 1});
    REQUIRE((plain.unknowns() == 0 && plain.lines() == 0));

    // A word that is spelled as line ends would be is not one where they are not tokens.
    const auto words = Vocabulary::from_words({"a", "<eos>"}, {}, {.eos_per_line = false});
    const auto line = read("a <eos> a <eos> a\n", words);
    REQUIRE(line.lines() == 1);
    REQUIRE(line.part(0, 5, words).lines() == 0);

    // Of a mapped file, which lives as long as the part does.
    Corpus::encode(put(scratch / "x.txt", text), scratch / "x.tokens", v);
    const auto mapped = Corpus::map(scratch / "x.tokens", v).part(3, 6, v);
    REQUIRE(tokens_of(mapped) == Stream{1, 0, 4});

    for (const auto& [first, last] : {std::pair<Index, Index>{-1, 3}, {3, 3}, {4, 3}, {0, 11}})
        REQUIRE_THROWS_AS(whole.part(first, last, v), DataError);
    REQUIRE_THROWS_AS(whole.part(0, 3, Vocabulary::from_words({"a", "<eos>"})), DataError);
    const auto other = Vocabulary::from_words({"the", "<eos>", "cat", "mat", "dog"});
    const auto again = Corpus::map(scratch / "x.tokens", v);
    for (const auto* corpus : {&whole, &part, &mapped, &again}) {
        REQUIRE(corpus->fits(Vocabulary::from_words(v.words())));  // counts do not matter
        REQUIRE_THROWS_AS(corpus->part(0, 3, other), DataError);
    }
    const auto bare_tokens = Corpus::from_tokens({0, 1, 2}, 5);  // know only the size
    REQUIRE(bare_tokens.part(0, 2, other).size() == 2);
}
