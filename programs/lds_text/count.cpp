/// @file count.cpp  Counts texts, or a shard of them, into a file; adds shards.
#include <algorithm>
#include <array>
#include <charconv>
#include <isogloss/distributed/counts.hpp>
#include <limits>

#include "../shared/ranks.hpp"
#include "../shared/threads.hpp"
#include "counting.hpp"

namespace lt {

namespace {

/// "2GiB", "512 MiB", "1000000": a number of bytes.
ig::Index parse_bytes(const std::string& given) {
    constexpr std::array<std::pair<const char*, int>, 6> units{
        {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
    ig::Index number = 0;
    const char* const end = given.data() + given.size();
    auto [at, error] = std::from_chars(given.data(), end, number);
    while (at != end && *at == ' ') ++at;
    const std::string unit(at, end);
    const auto* const found =
        std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
    if (error != std::errc() || number < 1 || found == units.end() ||
        number > std::numeric_limits<ig::Index>::max() >> found->second)
        throw ig::DataError(
            ig::message("--memory is '", given,
                        "', expected a whole number of bytes, optionally followed by KiB, MiB, GiB or "
                        "TiB, such as 2GiB"));
    return number << found->second;
}

int add_files(const CountCommand& o) {
    Stopwatch clock;
    std::vector<counts::LagCounts> parts;
    ig::text::Vocabulary vocabulary;
    long long tokens = 0;
    for (const std::string& path : o.add) {
        auto file = counts::load_counts(path);
        if (parts.empty()) vocabulary = file.vocabulary;
        if (!(file.vocabulary == vocabulary))
            throw ig::DataError("'", path, "' and '", o.add.front(), "' have different vocabularies; ",
                                "count all shards with the same --vocabulary-from");
        tokens += file.counts.tokens();
        parts.push_back(std::move(file.counts));
    }
    counts::save_counts(o.counts, parts, vocabulary);
    say("%zu files added, %lld tokens, %.2f s\n", parts.size(), tokens, clock.lap());
    return 0;
}

/// The command on one of its ranks, each of which has a part of the text. The first checks the files before
/// any rank continues, and writes them.
int count_on(program::Ranks& ranks, const CountCommand& o) {
    program::use_threads("count", o.threads);
    if (ranks.first())
        files::Outputs()
            .read("--text", o.text)
            .read("--vocabulary-from", o.vocabulary_from)
            .read("--add", o.add)
            .write("--counts", o.counts, counts_kind())
            .lock("--counts", o.memory.empty() ? "" : o.counts)
            .write("--vocabulary-to", o.vocabulary_to, vocabulary_kind())
            .write("--tokens-to", o.tokens_to, {"file of tokens", is_token_file})
            .check();
    if (o.text.empty() == o.add.empty())
        throw ig::DataError("count: give --text to count, or --add to add counts, and not both");
    if (o.text.empty() && !o.tokens_to.empty())
        throw ig::UsageError("count: --tokens-to has no effect with --add, which reads no text");
    if (!o.add.empty() && ranks.size() > 1)
        throw ig::UsageError(ig::message("count: --add is given to ", ranks.size(),
                                         " ranks, but a single process adds files; start it without mpirun"));
    if (o.resume && o.overwrite)
        throw ig::UsageError(
            "count: --resume continues a counting and --overwrite begins it again; give one of them");
    ig::require("count", "--lags", o.lags, 1, 1000);  // before a vocabulary or tokens are written
    parse_shard(o.shard);
    if (!o.tokens_to.empty()) files::require_regular(o.text, "write it to a file, or leave --tokens-to out");
    ranks.barrier();
    if (!o.add.empty()) return add_files(o);
    if (!o.memory.empty()) return count_within(o, parse_bytes(o.memory), ranks);
    for (const auto& [option, given] :
         {std::pair("--spill", !o.spill.empty()), std::pair("--resume", o.resume),
          std::pair("--overwrite", o.overwrite)})
        if (given)
            throw ig::UsageError(ig::message(option,
                                             " has no effect without --memory, which spills counts "
                                             "to files; give --memory too, or leave it out"));
    Stopwatch clock;
    const auto vocabulary = vocabulary_of(o);
    if (ranks.first()) write_beside(o, vocabulary, [] {});
    const auto corpus = corpus_of(o.text, vocabulary);
    const double reading = clock.lap();
    counts::LagCounts counts(vocabulary.size(), {.lags = o.lags,
                                                 .boundary = boundary(o.sentences, vocabulary),
                                                 .vocabulary_checksum = vocabulary.checksum()});
    const auto [first, last] = part_of(shard_of(o, corpus.size()), ranks.rank(), ranks.size());
    counts.add(corpus.tokens(), first, last);
    counts = distributed::sum_of_ranks(std::move(counts), ranks);
    const double counting = clock.lap();
    if (ranks.first()) counts::save_counts(o.counts, counts, vocabulary);
    say("%lld tokens, %td types, %td lags: reading %.2f s, counting %.2f s, writing %.2f s, peak %.0f "
        "MiB%s\n",
        static_cast<long long>(counts.tokens()), vocabulary.size(), counts.lags(), reading, counting,
        clock.lap(), peak_memory(), ranks.size() > 1 ? " on the first rank" : "");
    return 0;
}

}  // namespace

int count(const CountCommand& o) {
    program::Ranks ranks;
    return ranks.guard([&] { return count_on(ranks, o); });
}

}  // namespace lt
