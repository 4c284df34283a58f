/// @file main.cpp  The command line of lds_text: count, fit, embed, inspect, near, tag, rnn, start, plot.
#include <CLI/CLI.hpp>
#include <initializer_list>
#include <isogloss/error.hpp>

#include "../shared/program.hpp"
#include "../shared/ranks.hpp"
#include "commands.hpp"

namespace {

namespace ig = isogloss;

/// Throws UsageError if any of these options of a command is given.
void without(const CLI::App* command, const char* why, std::initializer_list<const char*> options) {
    for (const char* option : options)
        if (command->count(option) > 0)
            throw ig::UsageError(
                ig::message(command->get_name(), ": ", option, " has no effect ", why, "; leave it out"));
}

int work(int argc, char** argv) {
    CLI::App app(
        "Linear dynamical systems for text: counts, fitting, embeddings of tokens and words, tagging.");
    app.require_subcommand(1);
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

    lt::CountCommand c;
    auto* count =
        app.add_subcommand("count", "Count lagged co-occurrences of a text or a shard of it, or add counts");
    count->add_option("--text,text", c.text, "text files, counted as one text; or files of tokens")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    count->add_option("--counts", c.counts, "file to write")->required();
    count->add_option("--vocabulary", c.vocabulary, "most types; 0: no limit");
    count->add_option("--min-count", c.min_count, "rarer types become <unk>");
    count->add_option("--vocabulary-from", c.vocabulary_from, "vocabulary file, the same for all shards");
    count->add_option("--vocabulary-to", c.vocabulary_to, "file to write the vocabulary to");
    count->add_option("--tokens-to", c.tokens_to,
                      "file to write the tokens to: --text of a later count, or of each shard");
    count->add_option("--lags", c.lags, "distances 1 to this");
    count->add_option("--shard", c.shard, "NUMBER/OF: that part of the text");
    count->add_option("--add", c.add, "files of counts to add, in place of a text")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    count->add_flag("--sentences", c.sentences, "no pair crosses a line end");
    auto* count_threads = count->add_option("--threads", c.threads, "threads; under mpirun 1 on each rank");
    count->add_option("--memory", c.memory,
                      "memory limit of each rank, such as 2GiB: what does not fit is spilled to files");
    count->add_option("--spill", c.spill, "parent of the folder of these files [that of --counts]");
    count->add_flag("--resume", c.resume, "with --memory: continue from the files already written");

    lt::FitCommand f;
    auto* fit = app.add_subcommand("fit", "Fit a system: subspace identification, then EM");
    const auto list = CLI::MultiOptionPolicy::TakeAll;
    fit->add_option("--train", f.train, "text files, learnt from as one text; or files of tokens")
        ->multi_option_policy(list);
    fit->add_option("--counts", f.counts, "file of `count`, in place of a text");
    fit->add_option("--dev", f.dev,
                    "held-out text, or files of tokens, whose likelihood is reported after every iteration")
        ->multi_option_policy(list);
    fit->add_flag(
        "--select", f.select,
        "fit a system for each --pseudo-counts, --states and --ssid-lags, and keep the one, and its "
        "iteration, that best predicts the next word of --dev");
    fit->add_option("--model", f.model, "file to write, after every iteration")->required();
    fit->add_option("--states", f.states, "states [200]")->multi_option_policy(list);
    fit->add_option("--vocabulary", f.vocabulary, "most types of the text; 0: no limit [10000]");
    fit->add_option("--vocabulary-from", f.vocabulary_from, "vocabulary file of --train");
    fit->add_option("--ssid-lags", f.ssid_lags, "blocks of the Hankel operator [4]")
        ->multi_option_policy(list);
    fit->add_option("--em-lags", f.em_lags, "horizon of EM's statistics [7]");
    fit->add_option("--pseudo-counts", f.pseudo_counts,
                    "added to the count of every word [half of the tokens, shared by the types; with "
                    "--select 0.05, 0.15, "
                    "0.5 and 1.5 times the tokens]")
        ->multi_option_policy(list);
    fit->add_option("--iterations", f.iterations, "iterations of EM");
    fit->add_option("--stop", f.stop, "stop when an iteration gains less than this, in nats per token");
    fit->add_option("--seed", f.seed, "of the random numbers [1]");
    auto* fit_threads = fit->add_option("--threads", f.threads, "threads; under mpirun 1 on each rank");
    fit->add_option(
        "--shards", f.shards,
        "parts of the vocabulary whose sums are added in a fixed order: with the same number of "
        "parts, any number of ranks that mpirun starts gives the same file [0: none; under mpirun "
        "4, or as many as ranks]");
    fit->add_option("--log", f.log, "CSV file with a row per iteration");
    fit->add_flag("--sentences", f.sentences, "no pair crosses a line end");
    fit->add_flag("--random-start", f.random_start, "random parameters in place of subspace identification");
    fit->add_flag("--scaled", f.scaled,
                  "estimate the covariance of the states' noise in subspace identification");
    fit->add_flag("--matrix-free", f.matrix_free,
                  "store no counts: every product with co-occurrences reads --train, whatever its length");
    fit->add_option("--checkpoint-seconds", f.checkpoint_seconds,
                    "minimum time between two saves of subspace identification, to FILE.ssid beside --model");
    fit->add_flag("--resume", f.resume, "continue from the file --model, or from its FILE.ssid");

    lt::EmbedCommand e;
    auto* embed = app.add_subcommand("embed", "Write vectors of tokens in their context, and of words");
    embed->add_option("--model", e.model, "file of `fit`")->required();
    embed->add_option("--text", e.text, "text files, a sentence a line; or files of tokens")
        ->multi_option_policy(list);
    embed->add_option("--out", e.out, "safetensors file for the vectors of its tokens");
    embed->add_option("--states", e.states, "which states")->check(CLI::IsMember({"smoother", "filter"}));
    embed->add_option("--types", e.types, "word2vec text file for the vectors of words");
    embed->add_option("--threads", e.threads, "threads");
    embed->add_flag("--overwrite", e.overwrite, "write --types even if a file of that name exists");

    lt::InspectCommand i;
    auto* inspect = app.add_subcommand("inspect", "Print the spectrum, and what leads to what");
    inspect->add_option("--model", i.model, "file of `fit`")->required();
    inspect->add_option("--pairs", i.pairs, "pairs of singular vectors");
    inspect->add_option("--words", i.words, "words of each");
    inspect->add_option("--min-count", i.min_count, "words rarer than about this are left out");
    inspect->add_flag("--json", i.json, "for programs: one object, as JSON");

    lt::NearCommand n;
    auto* near =
        app.add_subcommand("near", "Print the nearest neighbours of words, or of tokens in their context");
    near->add_option("--model", n.model, "file of `fit`")->required();
    near->add_option("--words,words", n.words, "words")->required()->multi_option_policy(list);
    near->add_option("--text", n.text,
                     "text files, a sentence a line, or files of tokens: the neighbours of each token of the "
                     "words among all of their tokens")
        ->multi_option_policy(list);
    near->add_option("--count", n.count, "neighbours of each");
    near->add_option("--occurrences", n.occurrences, "with --text: at most this many tokens of a word");
    near->add_option("--min-count", n.min_count, "without --text: words rarer than about this are left out");
    near->add_option("--threads", n.threads, "threads");
    near->add_flag("--json", n.json, "for programs: as JSON, one object per line");

    lt::TagCommand t;
    auto* tag = app.add_subcommand(
        "tag", "Train and test a tagger that sees one vector per word, or the words themselves");
    tag->add_option("--model", t.model, "file of `fit`");
    tag->add_option("--vectors", t.vectors, "word vectors, in place of a model");
    tag->add_option("--states", t.states, "what a word's vector is")
        ->check(CLI::IsMember({"smoother", "filter", "types"}));
    tag->add_option("--train", t.train, "tagged text")->required();
    tag->add_option("--dev", t.dev, "tagged text that chooses the epoch")->required();
    tag->add_option("--test", t.test, "tagged text")->required();
    tag->add_option("--format", t.format, "of these; conll: entities as IOB1 or IOB2")
        ->check(CLI::IsMember({"conllu", "conll"}));
    tag->add_option("--units", t.units, "hidden units");
    tag->add_option("--epochs", t.epochs, "passes");
    tag->add_option("--window", t.window, "also the vectors of this many words on either side");
    tag->add_option("--batch", t.batch, "words in a step")->check(CLI::Range(1, 1024));
    tag->add_option("--rate", t.rate, "learning rate [0.003; lexical 0.1]");
    tag->add_option("--features", t.features,
                    "vectors: each word by itself from its vector; lexical: a chain of tags from words, "
                    "affixes, shapes and neighbours, and from vectors where there are any")
        ->check(CLI::IsMember({"vectors", "lexical"}));
    tag->add_option("--min-count", t.min_count, "lexical: features seen less often are left out");
    tag->add_option("--seed", t.seed, "of start values and order");
    tag->add_option("--threads", t.threads, "threads");
    tag->add_option("--predictions", t.predictions, "file for the tags of the test text, one a line");
    tag->add_flag("--overwrite", t.overwrite, "write --predictions even if a file of that name exists");
    tag->add_flag("--json", t.json,
                  "for programs: the result as one object of JSON, progress on standard error");
    tag->add_option("--against", t.against, "such a file of another tagger, to compare with");

    lt::RnnCommand r;
    auto* rnn =
        app.add_subcommand("rnn", "Train a recurrent language model, from a system or from random numbers");
    rnn->add_option("--train", r.train, "text files, or files of tokens")
        ->required()
        ->multi_option_policy(list);
    rnn->add_option("--valid", r.valid, "text files, or files of tokens")
        ->required()
        ->multi_option_policy(list);
    rnn->add_option("--test", r.test, "text files, or files of tokens")->multi_option_policy(list);
    rnn->add_option("--model", r.model, "file of `fit` to start from");
    rnn->add_option("--save", r.save, "file for the best network; FILE.train beside it holds the training");
    rnn->add_option("--vocabulary-from", r.vocabulary_from,
                    "random start: file of `fit` or of `count --vocabulary-to`, whose words are taken");
    rnn->add_option("--vocabulary", r.vocabulary,
                    "random start: most types of the text; 0: no limit [10000]");
    rnn->add_option("--units", r.units, "random start: hidden units [300]");
    rnn->add_option("--init", r.init, "largest start value, for a random start");
    rnn->add_option("--rms", r.rms, "size of a unit at the start from a system");
    rnn->add_option("--gain", r.gain, "of the output matrix at that start");
    rnn->add_option("--power", r.power, "of the whitening in it, 0 to 1");
    rnn->add_option("--epochs", r.epochs, "most passes");
    rnn->add_option("--rate", r.rate, "learning rate");
    rnn->add_option("--decay", r.patience_decay, "factor of the rate once validation stops improving");
    rnn->add_option("--clip", r.clip, "largest norm of the gradient");
    rnn->add_option(
        "--epsilon", r.epsilon,
        "entries of the gradient by the logits below this are sampled, without bias; 0: all are computed");
    rnn->add_option("--batch", r.batch, "batch columns");
    rnn->add_option("--bptt", r.bptt, "steps the gradient flows back");
    rnn->add_option("--seed", r.seed, "of start values");
    rnn->add_option("--threads", r.threads, "threads");
    rnn->add_option("--log", r.log, "CSV file with a row per epoch");
    rnn->add_option("--checkpoint-every", r.checkpoint_every, "batches between two checkpoints of --save");
    rnn->add_flag("--resume", r.resume, "continue where FILE.train of --save stopped");
    rnn->add_flag("--overwrite", r.overwrite, "start over even if FILE.train holds a training");

    lt::StartCommand s;
    auto* start =
        app.add_subcommand("start", "Write a model that `language_model train --start-from` begins with");
    start->add_option("--model", s.model, "file of `fit`")->required();
    start->add_option("--out", s.out, "file to write")->required();
    start
        ->add_option("--cell", s.cell,
                     "rnn: all of it from the system; others: word vectors and softmax, the cell at random")
        ->check(CLI::IsMember({"rnn", "lstm", "gru", "rhn"}));
    start->add_option("--rms", s.rms, "size of a unit at the start");
    start->add_option("--gain", s.gain, "of the output matrix");
    start->add_option("--power", s.power, "of the whitening in it, 0 to 1");
    start->add_option("--init", s.init, "largest start value of a cell at random");
    start->add_option("--seed", s.seed, "of these");

    lt::PlotCommand p;
    auto* plot =
        app.add_subcommand("plot", "Draw curves of `fit` or `rnn` from their logs, or spectra of systems");
    plot->add_option("--logs", p.logs, "files of `fit --log`, or of `rnn --log`")->multi_option_policy(list);
    plot->add_option("--systems", p.systems, "files of `fit`: eigenvalues and singular values")
        ->multi_option_policy(list);
    plot->add_option("--names", p.names, "name of each [the files' names]")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    plot->add_option("--svg", p.svg, "picture to write");

    if (const auto end = program::parse(app, argc, argv)) return *end;
    if (program::Ranks::launched()) {  // the ranks share the cores
        if (count_threads->count() == 0) c.threads = 1;
        if (fit_threads->count() == 0) f.threads = 1;
    }
    if (*count) {
        if (c.text.empty())
            without(count, "with --add, whose files have words and distances",
                    {"--vocabulary", "--vocabulary-from", "--vocabulary-to", "--min-count", "--lags",
                     "--sentences", "--shard"});
        if (!c.vocabulary_from.empty())
            without(count, "with --vocabulary-from, whose words are taken", {"--vocabulary", "--min-count"});
        return lt::count(c);
    }
    if (*fit) {
        if (f.select)
            without(fit, "with --select, which ends each candidate three iterations after its best",
                    {"--stop"});
        return lt::fit(f);
    }
    program::require_alone(app.get_subcommands().front()->get_name(), "count and fit");
    if (*embed) {
        if (e.text.empty()) without(embed, "without --text", {"--out", "--states"});
        return lt::embed(e);
    }
    if (*inspect) return lt::inspect(i);
    if (*near) {
        if (n.text.empty()) without(near, "without --text", {"--occurrences"});
        else without(near, "with --text", {"--min-count"});
        return lt::near(n);
    }
    if (*tag) {
        if (t.model.empty()) without(tag, "without --model", {"--states"});
        if (t.model.empty() && t.vectors.empty()) without(tag, "without vectors", {"--window"});
        if (t.features == "lexical") without(tag, "with --features lexical", {"--units", "--batch"});
        else without(tag, "without --features lexical", {"--min-count"});
        return lt::tag(t);
    }
    if (*rnn) {
        if (r.model.empty()) without(rnn, "at a random start", {"--rms", "--gain", "--power"});
        else without(rnn, "with --model, whose values are taken", {"--init"});
        return lt::rnn(r);
    }
    if (*start) return lt::start(s);
    return lt::plot(p);
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work, "a system of this size"); }
