#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <isogloss/counts/files.hpp>
#include <isogloss/io.hpp>
#include <isogloss/lds/files.hpp>
#include <isogloss/text/corpus.hpp>
#include <string>
#include <vector>

#include "../../programs/shared/csv_log.hpp"
#include "catch.hpp"
#include "failing_calls.hpp"
#include "files.hpp"
#include "lds/texts.hpp"

using namespace isogloss;
using namespace isogloss::io;
using namespace isogloss::counts;
using namespace isogloss::lds;

namespace {

// Each call on files fails in turn: by itself or with all that follow, for want of space, of a device, by a
// signal, or cut short.
template <class Attempt> int for_each_failure(Attempt&& attempt) {
    int most = 0;
    for (const int error : {ENOSPC, EIO, EINTR, 0})
        for (const bool for_ever : {false, true}) {
            if (for_ever && (error == EINTR || error == 0)) continue;  // no call has to come to an end then
            for (int k = 0;; ++k) {
                most = std::max(most, k);
                INFO("call " << k << " fails: " << (error ? std::strerror(error) : "cut short")
                             << (for_ever ? ", and all after it" : ""));
                if (!attempt(failing::Plan{k, error, for_ever})) break;
            }
        }
    return most;
}

// Writes over an old file of `dir` as often as calls can fail. Afterwards it is the old or the new one,
// nothing is left beside it, and where it is the old one a FileError has named it.
void old_or_new(const std::string& old, const std::function<void(const std::string&)>& write) {
    TemporaryDirectory dir;
    const auto path = put(dir / "precious", old);
    write(path);
    const std::string renewed = contents(path);
    REQUIRE(renewed != old);
    const long entries = dir.entries();
    int refused = 0;
    const int calls = for_each_failure([&](const failing::Plan& plan) {
        put(path, old);
        std::string error;
        failing::begin(plan);
        try {
            write(path);
        } catch (const FileError& e) {
            error = e.what();
        } catch (const std::exception& e) {
            error = std::string("not a FileError: ") + e.what();
        }
        failing::end();
        if (!failing::failed) return false;
        CAPTURE(error);
        const std::string found = contents(path);
        REQUIRE((found == old || found == renewed));
        REQUIRE(dir.entries() == entries);
        if (error.empty()) {
            REQUIRE(found == renewed);
        } else {
            ++refused;
            REQUIRE(error.starts_with("isogloss: "));
            REQUIRE(error.find("precious") != std::string::npos);
        }
        if (plan.error == EINTR || plan.error == 0) {
            // a signal or a short write is no failure, but for a flush that a signal stopped
            const bool flush = error.find("cannot flush") != std::string::npos;
            REQUIRE((error.empty() || flush || error.find("Interrupted") != std::string::npos));
        }
        return true;
    });
    CHECK(calls >= 6);
    CHECK(refused >= 4);
}

// Reads a file as often as calls can fail: a FileError that names it, or all of it.
template <class Value>
void all_or_error(const std::string& path, const Value& expected, const std::function<Value()>& read) {
    int refused = 0;
    for_each_failure([&](const failing::Plan& plan) {
        std::string error;
        bool right = false;
        failing::begin(plan);
        try {
            const Value found = read();
            failing::end();
            right = found == expected;
        } catch (const FileError& e) {
            error = e.what();
        } catch (const std::exception& e) {
            error = std::string("not a FileError: ") + e.what();
        }
        failing::end();
        if (!failing::failed) return false;
        CAPTURE(error);
        REQUIRE(right == error.empty());
        if (error.empty()) return true;
        ++refused;
        REQUIRE(error.starts_with("isogloss: "));
        REQUIRE(error.find(path) != std::string::npos);
        REQUIRE((plan.error == ENOSPC || plan.error == EIO));
        return true;
    });
    CHECK(refused >= 2);
}

const text::Vocabulary& vocabulary() {
    static const auto v = text::Vocabulary::from_words({"a", "b", "c", "<eos>"}, {4, 3, 2, 1});
    return v;
}

}  // namespace

TEST_CASE("A checkpoint is the old or the new one, whatever call fails", "[io][failing]") {
    std::string characters(3000, 'x');
    double number = 2.5;
    Checkpoint checkpoint;
    checkpoint.text("text", characters).number("number", number);
    TemporaryDirectory dir;
    checkpoint.save(dir / "f");
    const std::string old = contents(dir / "f");
    characters.assign(700'000, 'y');  // more than the buffer
    number = 7;
    old_or_new(old, [&](const std::string& path) { checkpoint.save(path); });
    checkpoint.save(dir / "f");
    all_or_error<bool>(dir / "f", true, [&] {
        characters.clear();
        number = 0;
        try {
            checkpoint.load(Safetensors::open(dir / "f"));
        } catch (const Error&) {
            REQUIRE((characters.empty() && number == 0));  // taken whole or not at all
            throw;
        }
        return characters == std::string(700'000, 'y') && number == 7;
    });
}

TEST_CASE("A token file is the old or the new one, whatever call fails", "[io][failing]") {
    TemporaryDirectory dir;
    const auto text = put(dir / "precious.txt", "a b c\nb a\n");  // named where it cannot be read, too
    old_or_new("old tokens",
               [&](const std::string& path) { text::Corpus::encode(text, path, vocabulary()); });
    text::Corpus::encode(text, dir / "t", vocabulary());
    all_or_error<std::vector<Token>>(dir / "t", {0, 1, 2, 3, 1, 0, 3}, [&] {
        const auto corpus = text::Corpus::map(dir / "t", vocabulary());
        const auto tokens = corpus.tokens();
        return std::vector<Token>(tokens.begin(), tokens.end());
    });
}

TEST_CASE("Word vectors are the old or the new ones, whatever call fails", "[io][failing]") {
    const WordVectors vectors{{"a", "b", "c"}, 2, {1, 2, 3, 4, 5, 6}};
    for (const auto format :
         {WordVectorFormat::word2vec_text, WordVectorFormat::word2vec_binary, WordVectorFormat::glove_text}) {
        old_or_new("old vectors",
                   [&](const std::string& path) { write_word_vectors(path, vectors, format); });
        TemporaryDirectory dir;
        write_word_vectors(dir / "v", vectors, format);
        all_or_error<std::vector<float>>(dir / "v", vectors.values,
                                         [&] { return read_word_vectors(dir / "v").values; });
    }
}

TEST_CASE("A log has its rows or those and a new one, whatever call fails", "[io][failing]") {
    const auto all = [](std::string_view) { return true; };
    old_or_new("h\n1\n2\n3\nbeginn", [&](const std::string& path) { files::CsvLog(path, "h", all); });
    old_or_new("h\n1\n2\n3\n", [&](const std::string& path) {
        files::CsvLog(path, "h", [](std::string_view row) { return row < "3"; });
    });
    TemporaryDirectory dir;
    const auto path = put(dir / "log", "");
    const files::CsvLog log(path, "h", all);
    for (const std::string old : {"h\n1\n", ""})  // somebody has emptied it
        for_each_failure([&](const failing::Plan& plan) {
            put(path, old);
            std::string error;
            failing::begin(plan);
            try {
                log.append("2");
            } catch (const FileError& e) {
                error = e.what();
            }
            failing::end();
            if (!failing::failed) return false;
            const std::string whole = old.empty() ? "h\n2\n" : "h\n1\n2\n";
            REQUIRE(contents(path) == (error.empty() ? whole : old));
            REQUIRE((error.empty() || error.find(path) != std::string::npos));
            REQUIRE(dir.entries() == 1);
            return true;
        });
}

TEST_CASE("Counts and systems are the old or the new ones, whatever call fails", "[io][failing]") {
    LagCounts counts(4, {.lags = 2, .boundary = 3});
    counts.add(std::vector<Token>{0, 1, 2, 3, 1, 0, 3, 0, 0, 2, 3});
    old_or_new("old counts", [&](const std::string& path) { save_counts(path, counts, vocabulary()); });
    TemporaryDirectory dir;
    save_counts(dir / "counts", counts, vocabulary());
    all_or_error<bool>(dir / "counts", true, [&] { return load_counts(dir / "counts").counts == counts; });

    const LdsFile<float> it{texts::recorded<float>(),
                            identity(Index{2}),
                            2 * identity(Index{2}),
                            text::Vocabulary::from_words({"a", "b", "c", "d", "e", "<eos>"}),
                            {3, 2},
                            {-7, -6.5},
                            {}};
    old_or_new("old system", [&](const std::string& path) { save_lds(path, it); });
    save_lds(dir / "system", it);
    all_or_error<bool>(dir / "system", true, [&] {
        const auto back = load_lds<float>(dir / "system");
        return back.system.A == it.system.A && back.vocabulary == it.vocabulary;
    });
}
