/// @file count.cpp  Counts of a text, or of a shard of it, in a file; shards added.
#include <isogloss/lds/files.hpp>
#include <sstream>

#include "common.hpp"

namespace lt {

namespace {

/// "2/4": the second of four.
std::pair<ig::Index, ig::Index> parse_shard(const std::string& shard) {
    std::istringstream in(shard);
    ig::Index number = 0, of = 0;
    char slash = 0;
    if (!(in >> number >> slash >> of) || slash != '/' || number < 1 || number > of || in.peek() != EOF)
        throw ig::DataError(
            ig::message("--shard is '", shard, "', expected NUMBER/OF, 2/4 for the second of four"));
    return {number, of};
}

}  // namespace

int count(const CountCommand& o) {
    ig::threads(o.threads);
    files::Outputs()
        .read("--text", o.text)
        .read("--vocabulary-from", o.vocabulary_from)
        .read("--add", o.add)
        .write("--counts", o.counts, counts_kind())
        .write("--vocabulary-to", o.vocabulary_to, vocabulary_kind())
        .check();
    Stopwatch clock;
    if (!o.add.empty()) {
        auto sum = lds::load_counts(o.add.front());
        for (std::size_t i = 1; i < o.add.size(); ++i) {
            auto other = lds::load_counts(o.add[i]);
            if (!(other.vocabulary == sum.vocabulary))
                throw ig::DataError(
                    ig::message("'", o.add[i], "' and '", o.add.front(),
                                "' have different vocabularies; count all shards with the same "
                                "--vocabulary-from"));
            sum.counts.add(std::move(other.counts));
        }
        lds::save_counts(o.counts, sum.counts, sum.vocabulary);
        say("%zu files added, %lld tokens, %.2f s\n", o.add.size(),
            static_cast<long long>(sum.counts.tokens()), clock.lap());
        return 0;
    }
    if (o.text.empty()) throw ig::DataError("count: give --text to count, or --add to add counts");
    const auto vocabulary = o.vocabulary_from.empty() ? read_vocabulary(o.text, o.vocabulary, o.min_count)
                                                      : ig::text::Vocabulary::load(o.vocabulary_from);
    if (!o.vocabulary_to.empty()) vocabulary.save(o.vocabulary_to);
    const auto corpus = ig::text::Corpus::read(o.text, vocabulary);
    const double reading = clock.lap();
    lds::LagCounts counts(vocabulary.size(), {.lags = o.lags, .boundary = boundary(o.sentences, vocabulary)});
    const auto [number, of] = parse_shard(o.shard);
    counts.add(corpus.tokens(), corpus.size() * (number - 1) / of, corpus.size() * number / of);
    const double counting = clock.lap();
    lds::save_counts(o.counts, counts, vocabulary);
    say("%lld tokens, %td types, %td lags: reading %.2f s, counting %.2f s, writing %.2f s, peak %.0f MiB\n",
        static_cast<long long>(counts.tokens()), vocabulary.size(), counts.lags(), reading, counting,
        clock.lap(), peak_memory());
    return 0;
}

}  // namespace lt
