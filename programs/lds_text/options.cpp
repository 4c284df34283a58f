/// @file options.cpp  The options of each command, and which of them exclude each other.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "../shared/program.hpp"
#include "commands.hpp"

namespace lt {

namespace {

using program::without;

/// Adds an option that takes one value or several.
template <class T>
CLI::Option* add_list(CLI::App& command, const char* name, std::vector<T>& values, const char* help) {
    return command.add_option(name, values, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

void CountCommand::declare(CLI::App& command) {
    add_list(command, "--text,text", text, "text files, counted as one text; or files of tokens");
    command.add_option("--counts", counts, "file to write")->required();
    command.add_option("--vocabulary", vocabulary, "most types; 0: no limit");
    command.add_option("--min-count", min_count, "rarer types become <unk>");
    command.add_option("--vocabulary-from", vocabulary_from,
                       "vocabulary file, or file of `fit`, whose words are taken: the same for all shards");
    command.add_option("--vocabulary-to", vocabulary_to, "file to write the vocabulary to");
    command.add_option("--tokens-to", tokens_to,
                       "file to write the tokens to: --text of a later count, or of each shard");
    command.add_option("--lags", lags, "distances 1 to this");
    command.add_option("--shard", shard, "NUMBER/OF: that part of the text");
    add_list(command, "--add", add, "files of counts to add, in place of a text");
    command.add_flag("--sentences", sentences, "no pair crosses a line end");
    command.add_option("--threads", threads, "threads; under mpirun 1 on each rank");
    command.add_option("--memory", memory,
                       "memory limit of each rank, such as 2GiB: what does not fit is spilled to files");
    command.add_option("--spill", spill, "parent of the folder of these files [that of --counts]");
    command.add_flag("--resume", resume, "with --memory: continue from the files already written");
    command.add_flag("--overwrite", overwrite, "with --memory: start over even if there are such files");
}

void CountCommand::require_effect(const CLI::App& command) const {
    if (text.empty() && !add.empty())
        without(command, "with --add, which reads files of counts row by row, with their words and distances",
                {"--vocabulary", "--vocabulary-from", "--vocabulary-to", "--min-count", "--lags",
                 "--sentences", "--shard", "--memory", "--spill", "--resume", "--overwrite"});
    if (!vocabulary_from.empty())
        without(command, "with --vocabulary-from, whose words are taken", {"--vocabulary", "--min-count"});
}

void FitCommand::declare(CLI::App& command) {
    add_list(command, "--train", train, "text files, learnt from as one text; or files of tokens");
    command.add_option("--counts", counts, "file of `count`, in place of a text");
    add_list(command, "--dev", dev,
             "held-out text, or files of tokens, whose likelihood is reported after every iteration");
    command.add_flag(
        "--select", select,
        "fit a system for each --pseudo-counts, --states and --ssid-lags, and keep the one, and its "
        "iteration, that best predicts the next word of --dev");
    command.add_option("--model", model, "file to write, after every iteration")->required();
    add_list(command, "--states", states, "states [200]");
    command.add_option("--vocabulary", vocabulary, "most types of the text; 0: no limit [10000]");
    command.add_option("--vocabulary-from", vocabulary_from,
                       "vocabulary file, or file of `fit`, whose words are taken");
    add_list(command, "--ssid-lags", ssid_lags, "blocks of the Hankel operator [4]");
    command.add_option("--em-lags", em_lags, "horizon of EM's statistics [7]");
    add_list(command, "--pseudo-counts", pseudo_counts,
             "added to the count of every word [half of the tokens, shared by the types; with "
             "--select 0.05, 0.15, "
             "0.5 and 1.5 times the tokens]");
    command.add_option("--iterations", iterations, "iterations of EM");
    command.add_option("--stop", stop, "stop when an iteration gains less than this, in nats per token");
    command.add_option("--seed", seed, "of the random numbers [1]");
    command.add_option("--threads", threads, "threads; under mpirun 1 on each rank");
    command.add_option(
        "--shards", shards,
        "parts of the vocabulary whose sums are added in a fixed order: with the same number of "
        "parts, any number of ranks that mpirun starts gives the same file [0: none; under mpirun "
        "4, or as many as ranks]");
    command.add_option("--log", log, "CSV file with a row per iteration");
    command.add_flag("--sentences", sentences, "no pair crosses a line end");
    command.add_flag("--random-start", random_start, "random parameters in place of subspace identification");
    command.add_flag(
        "--scaled", scaled,
        "estimate the covariance of the states' noise in subspace identification: for observations of a "
        "linear system, unlike text");
    command.add_flag(
        "--fixed-noise", fixed_noise,
        "EM keeps the covariance of the states' noise, as in the paper, which climbs more slowly");
    command.add_flag("--matrix-free", matrix_free,
                     "store no counts: every product with co-occurrences reads --train, whatever its length");
    command.add_option(
        "--checkpoint-seconds", checkpoint_seconds,
        "minimum time between two saves of subspace identification, to FILE.ssid beside --model");
    command.add_flag("--resume", resume, "continue from the file --model, or from its FILE.ssid");
}

void FitCommand::require_effect(const CLI::App& command) const {
    if (select) {
        without(command, "with --select, which ends each candidate three iterations after its best",
                {"--stop"});
        without(command, "with --select, whose candidates are not saved in subspace identification",
                {"--checkpoint-seconds"});
    }
    if (random_start)
        without(command, "with --random-start, in place of subspace identification",
                {"--ssid-lags", "--scaled", "--checkpoint-seconds"});
}

void EmbedCommand::declare(CLI::App& command) {
    command.add_option("--model", model, "file of `fit`")->required();
    add_list(command, "--text", text, "text files, a sentence a line; or files of tokens");
    command.add_option("--out", out, "safetensors file for the vectors of its tokens");
    command.add_option("--states", states, "which states")->check(CLI::IsMember({"smoother", "filter"}));
    command.add_option("--types", types, "word2vec text file for the vectors of words");
    command.add_option("--threads", threads, "threads");
    command.add_flag("--overwrite", overwrite, "write --types even if a file of that name exists");
}

void EmbedCommand::require_effect(const CLI::App& command) const {
    if (text.empty()) without(command, "without --text", {"--out", "--states"});
    if (types.empty()) without(command, "without --types", {"--overwrite"});
}

void InspectCommand::declare(CLI::App& command) {
    command.add_option("--model", model, "file of `fit`")->required();
    command.add_option("--pairs", pairs, "pairs of singular vectors");
    command.add_option("--words", words, "words of each");
    command.add_option("--min-count", min_count, "words rarer than about this are left out");
    command.add_flag("--json", json, "for programs: one object, as JSON");
}

void NearCommand::declare(CLI::App& command) {
    command.add_option("--model", model, "file of `fit`")->required();
    add_list(command, "--words,words", words, "words")->required();
    add_list(command, "--text", text,
             "text files, a sentence a line, or files of tokens: the neighbours of each token of the "
             "words among all of their tokens");
    command.add_option("--count", count, "neighbours of each");
    command.add_option("--occurrences", occurrences, "with --text: at most this many tokens of a word");
    command.add_option("--min-count", min_count, "without --text: words rarer than about this are left out");
    command.add_option("--threads", threads, "threads");
    command.add_flag("--json", json, "for programs: as JSON, one object per line");
}

void NearCommand::require_effect(const CLI::App& command) const {
    if (text.empty()) without(command, "without --text", {"--occurrences"});
    else without(command, "with --text", {"--min-count"});
}

void TagCommand::declare(CLI::App& command) {
    command.add_option("--model", model, "file of `fit`");
    command.add_option("--vectors", vectors, "word vectors, in place of a model");
    command.add_option("--states", states, "what a word's vector is")
        ->check(CLI::IsMember({"smoother", "filter", "types"}));
    command.add_option("--train", train, "tagged text")->required();
    command.add_option("--dev", dev, "tagged text that chooses the epoch")->required();
    command.add_option("--test", test, "tagged text")->required();
    command
        .add_option(
            "--format", format,
            "of these; xpos: conllu with the tags of its fifth column; conll: entities as IOB1 or IOB2")
        ->check(CLI::IsMember({"conllu", "xpos", "conll"}));
    command.add_option("--units", units, "hidden units");
    command.add_option("--epochs", epochs, "passes");
    command.add_option("--window", window, "also the vectors of this many words on either side");
    command.add_option("--batch", batch, "words in a step")->check(CLI::Range(1, 1024));
    command.add_option("--rate", rate, "learning rate [0.003; lexical 0.1]");
    command
        .add_option("--features", features,
                    "vectors: each word by itself from its vector; lexical: a chain of tags from words, "
                    "affixes, shapes and neighbours, and from vectors where there are any")
        ->check(CLI::IsMember({"vectors", "lexical"}));
    command.add_option(
        "--majority", majority,
        "words seen at least this often, and punctuation, have the tag they have most often in "
        "--train, and are not learnt from; 0: all words are");
    command.add_option("--min-count", min_count, "lexical: features seen less often are left out");
    command.add_option("--seed", seed, "of start values and order");
    command.add_option("--threads", threads, "threads");
    command.add_option("--predictions", predictions, "file for the tags of the test text, one a line");
    command.add_flag("--overwrite", overwrite, "write --predictions even if a file of that name exists");
    command.add_flag("--json", json,
                     "for programs: the result as one object of JSON, progress on standard error");
    command.add_option("--against", against, "such a file of another tagger, to compare with");
}

void TagCommand::require_effect(const CLI::App& command) const {
    if (model.empty()) without(command, "without --model", {"--states"});
    if (predictions.empty()) without(command, "without --predictions", {"--overwrite"});
    if (model.empty() && vectors.empty()) without(command, "without vectors", {"--window"});
    if (features == "lexical")
        without(command, "with --features lexical", {"--units", "--batch", "--majority"});
    else without(command, "without --features lexical", {"--min-count"});
}

void RnnCommand::declare(CLI::App& command) {
    add_list(command, "--train", train, "text files, or files of tokens")->required();
    add_list(command, "--valid", valid, "text files, or files of tokens")->required();
    add_list(command, "--test", test, "text files, or files of tokens");
    command.add_option("--model", model, "file of `fit` to start from");
    command.add_option("--save", save, "file for the best network; FILE.train beside it holds the training");
    command.add_option("--vocabulary-from", vocabulary_from,
                       "random start: file of `fit` or of `count --vocabulary-to`, whose words are taken");
    command.add_option("--vocabulary", vocabulary,
                       "random start: most types of the text; 0: no limit [10000]");
    command.add_option("--units", units, "random start: hidden units [300]");
    command.add_option("--init", init, "largest start value, for a random start");
    command.add_flag("--tied", tied, "the table is the output matrix too");
    command.add_option("--rms", rms, "size of a unit at the start from a system");
    command.add_option("--gain", gain, "of the output matrix at that start");
    command.add_option("--power", power, "of the whitening in it, 0 to 1");
    command.add_option("--epochs", epochs, "most passes");
    command.add_option("--rate", rate, "learning rate");
    command.add_option("--decay", decay, "factor of the rate once validation stops improving");
    command.add_option("--clip", clip, "largest norm of the gradient");
    command.add_option(
        "--epsilon", epsilon,
        "entries of the gradient by the logits below this are sampled, without bias; 0: all are computed");
    command.add_option("--batch", batch, "batch columns");
    command.add_option("--bptt", bptt, "steps the gradient flows back");
    command.add_option("--seed", seed, "of start values, and of what --epsilon samples");
    command.add_option("--threads", threads, "threads");
    command.add_option("--log", log, "CSV file with a row per epoch");
    command.add_option("--checkpoint-every", checkpoint_every, "batches between two checkpoints of --save");
    command.add_flag("--resume", resume, "continue where FILE.train of --save stopped");
    command.add_flag("--overwrite", overwrite, "start over even if FILE.train holds a training");
}

void RnnCommand::require_effect(const CLI::App& command) const {
    if (model.empty()) without(command, "at a random start", {"--rms", "--gain", "--power"});
    else without(command, "with --model, whose values are taken", {"--init"});
    if (!model.empty() && epsilon == 0)
        without(command, "with --model and without --epsilon: nothing is random", {"--seed"});
    if (save.empty()) without(command, "without --save", {"--overwrite", "--checkpoint-every"});
}

void StartCommand::declare(CLI::App& command) {
    command.add_option("--model", model, "file of `fit`")->required();
    command.add_option("--out", out, "file to write")->required();
    command
        .add_option("--cell", cell,
                    "rnn: all of it from the system; others: word vectors and softmax, the cell at random")
        ->check(CLI::IsMember({"rnn", "lstm", "gru", "rhn", "qrnn", "glnn", "gnn", "leaky"}));
    command.add_option("--rms", rms, "size of a unit at the start");
    command.add_option("--gain", gain, "of the output matrix");
    command.add_option("--power", power, "of the whitening in it, 0 to 1");
    command.add_option("--init", init, "largest start value of a cell at random");
    command.add_option("--seed", seed, "of these");
}

void StartCommand::require_effect(const CLI::App& command) const {
    if (cell == "rnn")
        without(command, "with --cell rnn, all of which is the system's", {"--init", "--seed"});
}

void PlotCommand::declare(CLI::App& command) {
    add_list(command, "--logs", logs, "files of `fit --log`, or of `rnn --log`");
    add_list(command, "--systems", systems, "files of `fit`: eigenvalues and singular values");
    add_list(command, "--names", names, "name of each [the files' names]");
    command.add_option("--svg", svg, "picture to write");
}

}  // namespace lt
