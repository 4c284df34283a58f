// Counts of a text in blocks within given memory: those of one pass, wherever they were stopped.
#include "../../programs/lds_text/counted_blocks.hpp"

#include <isogloss/random.hpp>

#include "allocations.hpp"
#include "catch.hpp"
#include "io/files.hpp"
#include "threads.hpp"

using namespace isogloss;
using counts::LagCounts;
using lt::BlockOptions, lt::CountedBlocks;

namespace {

struct Stop {};

text::Vocabulary words(Index V) {
    std::vector<std::string> all;
    for (Index i = 0; i < V; ++i) all.push_back(message("w", i));
    return text::Vocabulary::from_words(all, {}, {.eos_per_line = false});
}

// Words of which one half is near the word before.
std::vector<Token> text_of(Index tokens, Index V) {
    const Random random(3, 1);
    std::vector<Token> text;
    for (Index t = 0, last = 0; t < tokens; ++t) {
        last = random.uniform(2 * t) < 0.5 ? random.below(2 * t + 1, V)
                                           : (last + random.below(2 * t + 1, 4)) % V;
        text.push_back(static_cast<Token>(last));
    }
    return text;
}

BlockOptions tight(const text::Vocabulary& v, BlockOptions options, Index more = 0) {
    options.memory = CountedBlocks::least_memory(v, options) + more;
    return options;
}

// Gives a text in pieces of uneven sizes.
void give(CountedBlocks& blocks, std::span<const Token> left, const BlockOptions& options) {
    for (std::size_t i = 1; !left.empty(); ++i) {
        options.watch();
        const auto some = left.first(std::min(left.size(), 700 * (1 + i % 3)));
        blocks.add(some);
        left = left.subspan(some.size());
    }
}

// The bytes of the file that this counting writes.
std::string counted(const std::string& folder, const text::Vocabulary& v, const std::vector<Token>& text,
                    const BlockOptions& options) {
    CountedBlocks blocks(v, folder, options);
    give(blocks, text, options);
    blocks.finish();
    blocks.save(folder + ".counts", CountedBlocks::files(folder));
    return contents(folder + ".counts");
}

// And those of one pass.
std::string whole(const std::string& path, const text::Vocabulary& v, const std::vector<Token>& text,
                  const BlockOptions& o) {
    LagCounts all(v.size(), {.lags = o.lags, .boundary = o.boundary});
    all.add(text, std::min(o.first, std::ssize(text)), std::min(o.last, std::ssize(text)));
    save_counts(path, all, v);
    return contents(path);
}

}  // namespace

TEST_CASE("Blocks of a text add up to the file of one pass, to the byte", "[programs][counted_blocks]") {
    const TemporaryDirectory place;
    const auto v = words(40);
    for (const Index tokens : {0, 1, 3, 4096, 40000}) {
        const auto text = text_of(tokens, 40);
        for (const Token boundary : {-1, 4})
            for (const int n : {1, 3})
                for (const auto& [first, last] :
                     {std::pair(0, 1 << 20), std::pair(2, 9000), std::pair(8190, 20000)}) {
                    const Threads set(n);
                    const auto options =
                        tight(v, {.lags = 5, .boundary = boundary, .first = first, .last = last});
                    CHECK(counted(place / "spill", v, text, options) ==
                          whole(place / "whole", v, text, options));
                    CountedBlocks::remove(place / "spill");
                    CHECK(std::filesystem::is_empty(place / "spill"));
                }
    }
}

TEST_CASE("Counts beyond the memory fill no more than it", "[programs][counted_blocks]") {
    const TemporaryDirectory place;
    constexpr Index V = 5000;
    const auto v = words(V);
    std::vector<Token> text;  // pairs that hardly repeat: the counts are larger than the text
    const Random random(3, 1);
    for (Index t = 0; t < 200000; ++t) text.push_back(static_cast<Token>(random.below(t, V)));
    const auto expected = whole(place / "whole", v, text, {.lags = 3});
    for (const bool roomy : {false, true}) {
        const Threads set(roomy ? 2 : 1);
        const auto options = tight(v, {.lags = 3}, roomy ? 1 << 20 : 0);
        const MostBytes bytes;
        {
            CountedBlocks blocks(v, place / "spill", options);
            give(blocks, text, options);
            blocks.finish();
            CHECK(blocks.blocks() > (roomy ? 3 : 20));  // 20 of which not all can be added at once
            blocks.save(place / "sum", CountedBlocks::files(place / "spill"));
        }
        CHECK(bytes.most() < options.memory);
        CHECK(options.memory < 3'000'000);
        CHECK(contents(place / "sum") == expected);
        CountedBlocks::remove(place / "spill");
    }
    const MostBytes bytes;
    whole(place / "whole", v, text, {.lags = 3});
    CHECK(bytes.most() > 7'000'000);
}

TEST_CASE("A counting that was stopped anywhere goes on to the same counts", "[programs][counted_blocks]") {
    const TemporaryDirectory place;
    const auto v = words(300);
    const auto text = text_of(60000, 300);
    const auto expected = whole(place / "whole", v, text, {.lags = 3});
    int stops = 0, restored = 0;
    for (int begin = 10; begin < 60; begin += 10)
        for (int attempt = 0;; ++attempt) {
            REQUIRE(attempt < 400);
            auto options = tight(v, {.lags = 3}, 1000 * attempt);  // so that blocks end elsewhere
            const auto calls = std::make_shared<int>();
            options.watch = [calls, most = begin + attempt] {
                if (++*calls == most) throw Stop();
            };
            try {
                restored += CountedBlocks(v, place / "spill", options).blocks() > 0;
                const std::string found = counted(place / "spill", v, text, options);
                CHECK(found == expected);
                CountedBlocks::remove(place / "spill");
                break;
            } catch (const Stop&) {
                ++stops;
            }
        }
    CHECK(stops > 10);
    CHECK(restored > 10);
}

TEST_CASE("A damaged block is named, and without it its tokens are counted again",
          "[programs][counted_blocks][errors]") {
    const TemporaryDirectory place;
    const auto v = words(40);
    const auto text = text_of(30000, 40);
    const auto options = tight(v, {.lags = 3});
    const auto expected = whole(place / "whole", v, text, options);
    CHECK(counted(place / "spill", v, text, options) == expected);
    const auto files = CountedBlocks::files(place / "spill");
    REQUIRE(files.size() > 4);
    for (const std::size_t number : {0u, 2u}) {
        const std::string name = files[number].path, bytes = contents(name);
        auto damaged = bytes;
        damaged[bytes.size() / 2] ^= 4;
        put(name, damaged);
        REQUIRE_THROWS_MATCHES(counted(place / "spill", v, text, options), FileError, says(name, "damaged"));
        std::filesystem::remove(name);
        CHECK(CountedBlocks(v, place / "spill", options).blocks() == Index(number));
        CHECK(counted(place / "spill", v, text, options) == expected);
        CHECK(contents(name) == bytes);
    }
}

TEST_CASE("Blocks of another text are refused, and other files stay", "[programs][counted_blocks][errors]") {
    const TemporaryDirectory place;
    const auto v = words(40);
    const auto text = text_of(20000, 40);
    const auto options = tight(v, {.lags = 3});
    counted(place / "spill", v, text, options);
    const std::size_t blocks = CountedBlocks::files(place / "spill").size();
    for (const char* name : {"spill/notes", "spill/block-notes", "spill/sum-1.txt"})
        put(place / name, "of somebody");
    put(place / "spill/block-0-5-00.counts.isogloss-part-12-0", "left by a killed program");
    for (const std::size_t at : {std::size_t{0}, std::size_t{9000}, std::size_t{19999}}) {
        auto changed = text;
        changed[at] = (changed[at] + 1) % 40;
        REQUIRE_THROWS_MATCHES(counted(place / "spill", v, changed, options), DataError,
                               says("not those of", "resume with the same text"));
    }
    REQUIRE_THROWS_MATCHES(counted(place / "spill", v, {text.begin(), text.end() - 1}, options), DataError,
                           says("the first 19999 tokens"));
    CHECK(CountedBlocks::files(place / "spill").size() == blocks);
    CountedBlocks::remove(place / "spill");
    for (const char* name : {"spill/notes", "spill/block-notes", "spill/sum-1.txt"})
        CHECK(contents(place / name) == "of somebody");
    REQUIRE_THROWS_MATCHES(CountedBlocks(v, place / "none/spill", options), FileError,
                           says("cannot create the folder"));
}
