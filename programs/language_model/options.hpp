/// @file options.hpp  All options of the trainer, listed once: for the command line, for the file that a
/// training resumes from, and for reporting differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <isogloss/error.hpp>
#include <isogloss/linalg.hpp>
#include <isogloss/threads.hpp>
#include <isogloss/types.hpp>
#include <isogloss/utf8.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace lm {

namespace ig = isogloss;

/// What an option determines.
enum class Kind {
    model,     ///< the model itself: stored with it, and needed to rebuild it
    training,  ///< the course of the training: fixed once it has begun
    run        ///< this run alone: files, threads, how long
};

/// The largest size accepted; anything above is taken for a typing error.
inline constexpr ig::Index most_size = 100000;

/// The options of `train`, at the defaults of the program. The default of an empty optional depends on the
/// others, see settle().
struct Options {
    std::string cell = "lstm";
    std::optional<ig::Index> layers;
    ig::Index embedding = 0, depth = 5, rounds = 0, rank = 0, edges = 3;
    double bound = 4;
    std::vector<ig::Index> units = {200};  ///< one value for all layers, or one for each; see width()
    double keep = 0.7, keep_words = 1;
    std::optional<double> keep_input, keep_between, keep_state, keep_output;
    std::string scheme = "tied", head = "tied", loss = "al";
    std::optional<double> gamma, alpha, beta;
    double temperature = 20;
    std::string target = "differentiated";
    bool head_bias = false, unit_rows = false, two_tailed = false;
    double adversarial = 0, ar = 0, tar = 0, init = 0.1;

    std::string level = "word";
    std::optional<std::int64_t> min_count;
    ig::Index max_vocabulary = 0;
    std::string update = "sgd";
    std::optional<double> rate, head_rate;
    double clip = 5, weight_decay = 0, keep_weights = 1, damping = 0.01, floor = 1e-5, table_rate = 0.01;
    std::string schedule = "decay";
    ig::Index decay_from = 5;
    std::optional<double> decay;
    double warm_up = 0.1;
    ig::Index batch = 20, bptt = 35, shards = 0;
    bool random_bptt = false;
    std::string shuffle = "none";
    std::uint64_t seed = 1;
    std::string precision = "fp32";
    double epsilon = 0;
    std::string train_tokens, vocabulary, start, start_from, vectors;
    bool freeze = false, portable = false;

    std::string train, valid, test, model, log, corpus, preset;
    ig::Index epochs = 3, patience = 0, checkpoint_every = 500;
    double runaway = 2;
    int threads = 2;
    bool subspace = false, verbose = false, resume = false, overwrite = false;
};

/// Calls f(name, member, kind, help, choices) for every option; choices are empty if any value is allowed.
template <class O, class F> void each_option(O& o, F&& f) {
    using Choices = std::vector<std::string>;
    const Choices any;
    f("cell", o.cell, Kind::model, "recurrent cell",
      Choices{"rnn", "lstm", "gru", "rhn", "qrnn", "glnn", "gnn", "leaky"});
    f("layers", o.layers, Kind::model, "recurrent layers [as many as --units names, 2 for one]", any);
    f("units", o.units, Kind::model, "units of a layer, or of each: 1150,1150,400", any);
    f("embedding", o.embedding, Kind::model,
      "width of the word vectors; 0: as many as the last layer has units", any);
    f("depth", o.depth, Kind::model, "micro-steps of an rhn layer", any);
    f("rounds", o.rounds, Kind::model, "lstm, gru: rounds in which input and state gate one another, 0 to 8",
      any);
    f("rank", o.rank, Kind::model, "of the matrices of these rounds; 0: full", any);
    f("edges", o.edges, Kind::model,
      "edges that leave each unit of a glnn, gnn or leaky layer, its loop among them", any);
    f("bound", o.bound, Kind::model, "glnn, gnn, leaky: the sum of a unit stays within ± this; 0: no bound",
      any);
    f("keep", o.keep, Kind::model, "probability that dropout keeps a unit", any);
    f("keep-input", o.keep_input, Kind::model,
      "the same for the inputs: the word vectors and, under scheme recurrent, every layer's input; under "
      "gal it is --keep-state [--keep]",
      any);
    f("keep-between", o.keep_between, Kind::model,
      "scheme recurrent: the same for what a layer takes from the one below [--keep-input]", any);
    f("keep-state", o.keep_state, Kind::model,
      "the same for the states that enter the recurrence, of cells but qrnn, glnn, gnn and leaky; under tied "
      "they "
      "are passed up with that mask, under gal it is also that of a layer's input [--keep]",
      any);
    f("keep-output", o.keep_output, Kind::model,
      "the same before the head; under tied it is --keep-state [--keep]", any);
    f("keep-words", o.keep_words, Kind::model, "probability that dropout keeps a word", any);
    f("scheme", o.scheme, Kind::model, "where dropout puts its masks", Choices{"tied", "gal", "recurrent"});
    f("head", o.head, Kind::model, "softmax over the embedding table, or over a matrix of its own",
      Choices{"tied", "free"});
    f("head-bias", o.head_bias, Kind::model, "a bias in the tied head; a free head always has one", any);
    f("loss", o.loss, Kind::model, "cross-entropy, augmented loss, or the mixture of both",
      Choices{"ce", "al", "mixture"});
    f("gamma", o.gamma, Kind::model, "weight of the augmented loss over its temperature [0.65]", any);
    f("alpha", o.alpha, Kind::model, "weight of the augmented loss, in place of gamma", any);
    f("beta", o.beta, Kind::model, "share of the augmented loss in the mixture, 0 to 1", any);
    f("temperature", o.temperature, Kind::model, "of the augmented loss", any);
    f("target", o.target, Kind::model,
      "soft target of the augmented loss: held constant, or the gradient flows through it into the table",
      Choices{"held", "differentiated"});
    f("adversarial", o.adversarial, Kind::model,
      "in training, move the output vector of every target away from its state, by this share of its length",
      any);
    f("ar", o.ar, Kind::model,
      "activation regularisation: weight of the mean square of what the head reads, in nats a token", any);
    f("tar", o.tar, Kind::model, "the same of its change from step to step", any);
    f("unit-rows", o.unit_rows, Kind::model, "keep every word vector at norm 1", any);
    f("init", o.init, Kind::model, "weights start uniform within plus or minus this", any);

    f("level", o.level, Kind::model, "tokens are words or characters", Choices{"word", "character"});
    f("min-count", o.min_count, Kind::training, "rarer types become <unk> [1; 2 for the bundled text]", any);
    f("max-vocabulary", o.max_vocabulary, Kind::training, "most types kept; 0: no limit", any);
    f("update", o.update, Kind::training, "update rule",
      Choices{"sgd", "asgd", "adam", "muon", "ruop", "rbpm"});
    f("rate", o.rate, Kind::training,
      "learning rate [1; 0.1 for --start with --cell rnn; 0.001 for adam, ruop and rbpm, 0.02 for muon]",
      any);
    f("damping", o.damping, Kind::training, "ruop, rbpm: damping of the metric, as a share of its mean", any);
    f("floor", o.floor, Kind::training, "ruop, rbpm: lower bound of the metric, in squared nats", any);
    f("head-rate", o.head_rate, Kind::training, "ruop, rbpm: rate of the head [10 times the rate]", any);
    f("table-rate", o.table_rate, Kind::training,
      "ruop, rbpm with a free head: rate of the word vectors, which adam moves; muon: of all but the "
      "matrices of the cells",
      any);
    f("clip", o.clip, Kind::training,
      "largest norm of the whole gradient, for ruop and rbpm of the step in the metric; 0: no limit", any);
    f("weight-decay", o.weight_decay, Kind::training,
      "weight decay; for ruop and rbpm of the word vectors alone", any);
    f("two-tailed", o.two_tailed, Kind::training,
      "evaluate and keep the mean of the weights since a step that validation chooses", any);
    f("keep-weights", o.keep_weights, Kind::training,
      "probability that dropout keeps an entry of a recurrent matrix, or of any of a qrnn, drawn for a whole "
      "segment",
      any);
    f("schedule", o.schedule, Kind::training,
      "how the rate falls: from an epoch on, on a plateau, or after a rise along half a cosine, to 0 at the "
      "end of --epochs",
      Choices{"decay", "plateau", "one-cycle"});
    f("decay-from", o.decay_from, Kind::training, "epochs at full rate, for schedule decay", any);
    f("decay", o.decay, Kind::training, "factor of the rate [0.9; 0.25 for schedule plateau]", any);
    f("warm-up", o.warm_up, Kind::training,
      "share of the training in which the rate rises, for schedule one-cycle", any);
    f("batch", o.batch, Kind::training, "batch columns, of all ranks together", any);
    f("shards", o.shards, Kind::training,
      "parts that a batch is cut into for the ranks of mpirun, at least one for each; the model depends on "
      "them and not on the number of ranks; 0: 1, or under mpirun as many as ranks, at least 4",
      any);
    f("bptt", o.bptt, Kind::training, "steps the gradient flows back", any);
    f("random-bptt", o.random_bptt, Kind::training, "draw the steps of every batch around bptt", any);
    f("shuffle", o.shuffle, Kind::training,
      "partial: in every epoch each column of the batches begins at a random place of its part of the text",
      Choices{"none", "partial"});
    f("seed", o.seed, Kind::training, "of start values, masks, lengths and places", any);
    f("precision", o.precision, Kind::training,
      "what the factors of matrix products are rounded to in training; auto: bf16 where it is faster here",
      Choices{"fp32", "bf16", "auto"});
    f("epsilon", o.epsilon, Kind::training,
      "entries of the gradient by the logits below this are sampled, without bias; 0: all are computed", any);
    f("train-tokens", o.train_tokens, Kind::training,
      "A:B: train on these tokens of the training text alone, from A up to but without B, each a number or a "
      "share such as 50%; the vocabulary remains that of the whole text",
      any);
    f("vocabulary", o.vocabulary, Kind::training,
      "file of the vocabulary, as `lds_text count --vocabulary-to` writes it, in place of the text's own",
      any);
    f("start-from", o.start_from, Kind::training,
      "file of a model: its parameters and vocabulary to start with, and its options of the model", any);
    f("start", o.start, Kind::training,
      "file of `lds_text fit`: vocabulary, word vectors, softmax and, for --cell rnn, the cell start as its "
      "system; one layer of its states, --head free",
      any);
    f("vectors", o.vectors, Kind::training,
      "file of word vectors, as word2vec or GloVe write it, to start with; --embedding has their width", any);
    f("freeze", o.freeze, Kind::training,
      "keep the word vectors at their start values, those of --vectors, --start or --start-from", any);

    f("portable", o.portable, Kind::training,
      "a model of the same bytes on every processor, for any --threads; a step takes up to a tenth longer",
      any);

    f("train", o.train, Kind::run, "training text; without it the bundled text", any);
    f("valid", o.valid, Kind::run, "validation text", any);
    f("test", o.test, Kind::run, "test text, evaluated at the end", any);
    f("model", o.model, Kind::run, "file of the best model; the training is in FILE.train", any);
    f("log", o.log, Kind::run, "CSV file with a row per epoch", any);
    f("verbose", o.verbose, Kind::run, "a second line an epoch: rate, norm, longest vector", any);
    f("subspace", o.subspace, Kind::run,
      "head free: after every epoch, the distance between the column spaces of word vectors and softmax",
      any);
    f("corpus", o.corpus, Kind::run, "texts in ISOGLOSS_DATA; with --train, only for a preset",
      Choices{"ptb", "wikitext-2"});
    f("preset", o.preset, Kind::run,
      "a recipe, on --corpus ptb unless texts are given; fast is half an hour of a core",
      Choices{"fast", "wide", "small", "medium"});
    f("epochs", o.epochs, Kind::run, "passes over the training text", any);
    f("patience", o.patience, Kind::run, "epochs without a best before it ends; 0: never", any);
    f("runaway", o.runaway, Kind::run,
      "stop when the validation perplexity is above so many times its best; 0: never", any);
    f("checkpoint-every", o.checkpoint_every, Kind::run, "batches between two checkpoints", any);
    f("threads", o.threads, Kind::run, "threads", any);
    f("resume", o.resume, Kind::run, "continue where the training in FILE.train stopped", any);
    f("overwrite", o.overwrite, Kind::run, "start over even if the model or training is there", any);
}

template <class V> inline constexpr bool is_optional = false;
template <class V> inline constexpr bool is_optional<std::optional<V>> = true;
template <class V> inline constexpr bool is_list = false;
template <class V> inline constexpr bool is_list<std::vector<V>> = true;

/// A value as JSON; an empty optional is null, a list of one number is that number.
template <class V> nlohmann::json to_json(const V& value) {
    if constexpr (is_optional<V>) return value ? nlohmann::json(*value) : nlohmann::json();
    else if constexpr (is_list<V>)
        return value.size() == 1 ? nlohmann::json(value[0]) : nlohmann::json(value);
    else return value;
}

/// Options as JSON: all, or with `of_run` false without those of Kind::run.
inline nlohmann::json to_json(const Options& o, bool of_run = true) {
    nlohmann::json j;
    each_option(o, [&](const char* name, const auto& value, Kind kind, auto&&...) {
        if (of_run || kind != Kind::run) j[name] = to_json(value);
    });
    return j;
}

/// A value as JSON for a message, without what a terminal would obey and at most 80 bytes long: files come from anywhere.
inline std::string brief(const nlohmann::json& value) {
    const std::string quoted = ig::in_quotes(value.dump());
    return quoted.substr(1, quoted.size() - 2);
}

/// Whether a JSON value is a V without conversion: of its kind, and within its range.
template <class V> bool is_one(const nlohmann::json& j) {
    if constexpr (is_list<V>)
        return (j.is_array() || j.is_number()) && std::ranges::all_of(j, is_one<typename V::value_type>);
    else if constexpr (std::is_same_v<V, bool>) return j.is_boolean();
    else if constexpr (std::is_floating_point_v<V>) return j.is_number();
    else if constexpr (!std::is_integral_v<V>) return j.is_string();
    else if (j.is_number_unsigned()) return std::in_range<V>(j.get<std::uint64_t>());
    else return j.is_number_integer() && std::in_range<V>(j.get<std::int64_t>());
}

/// Brings the widths of layers to their stored form: one number if all are the same.
inline void even(std::vector<ig::Index>& units) {
    if (std::ranges::count(units, units.front()) == std::ssize(units)) units.resize(1);
}
/// Units of layer l, counted from 1.
inline ig::Index width(const Options& o, ig::Index l) {
    return o.units.size() == 1 ? o.units[0] : o.units[static_cast<std::size_t>(l - 1)];
}
/// The layers in words: "2 x 200 lstm", or "1150, 1150, 400 lstm".
inline std::string layers_in_words(const Options& o) {
    std::string words;
    for (const auto n : o.units) words += ig::message(words.empty() ? "" : ", ", n);
    return ig::message(o.units.size() == 1 ? ig::message(*o.layers, " x ") : "", words, " ", o.cell);
}

/// Options from JSON; missing ones keep their defaults. `where` names the file in messages.
inline Options from_json(const nlohmann::json& j, const std::string& where) {
    Options o;
    each_option(o, [&]<class V>(const char* name, V& value, auto&&...) {
        const auto at = j.find(name);
        if (at == j.end()) return;
        if constexpr (is_optional<V>) {
            if (at->is_null()) return;
        }
        const auto take = [&]<class T>(T& to) {
            const bool fits = is_one<T>(*at);
            if constexpr (is_list<T>) {
                if (fits && !at->is_array()) to = {at->template get<typename T::value_type>()};
                else if (fits) to = at->template get<T>();
            } else if (fits) {
                to = at->template get<T>();
            }
            return fits;
        };
        bool taken = false;
        if constexpr (is_optional<V>) taken = take(value.emplace());
        else taken = take(value);
        if (!taken) {
            throw ig::FileError(ig::message(
                where, ": the option '", name, "' is stored as ", brief(*at),
                ", which is not a valid value; the file is damaged or of another version of this program"));
        }
    });
    return o;
}

/// The options among `which` whose values differ, with both values: "--units (300 given, 200 stored)".
inline std::string differences(const Options& given, const Options& stored,
                               const std::set<std::string>& which) {
    std::string list;
    const auto a = to_json(given), b = to_json(stored);
    each_option(given, [&](const char* name, auto&&...) {
        if (which.contains(name) && a[name] != b[name])
            list += ig::message(list.empty() ? "" : ", ", "--", name, " (", brief(a[name]), " given, ",
                                brief(b[name]), " stored)");
    });
    return list;
}

/// Copies the options named in `names` from one set to another.
inline void copy_named(const Options& from, Options& to, const std::set<std::string>& names) {
    auto j = to_json(to);
    const auto source = to_json(from);
    for (const auto& name : names) j[name] = source[name];
    to = from_json(j, "command line");
}

/// Keep probabilities of the masks of a model.
struct Keeps {
    double input;    ///< of the input
    double between;  ///< of the input of a layer from the one below
    double state;    ///< of states on their way into the recurrence
    double output;   ///< of what the head reads
};

/// The keep probabilities under the scheme of the options; docs/programs/language_model.md shows the masks.
inline Keeps keeps(const Options& o) {
    const double state = o.keep_state.value_or(o.keep);
    const double input = o.scheme == "gal" ? state : o.keep_input.value_or(o.keep);
    return {input, o.keep_between.value_or(input), state,
            o.scheme == "tied" ? state : o.keep_output.value_or(o.keep)};
}

/// Whether the layers are networks on sparse graphs.
inline bool sparse(const Options& o) { return o.cell == "glnn" || o.cell == "gnn" || o.cell == "leaky"; }

/// The error in options with all defaults filled in, from the command line or from a file: "--bptt is 0,
/// expected at least 1". Empty if there is none, apart from those that the library itself reports.
inline std::string fault(const Options& o) {
    std::string found;
    const auto require = [&](bool fine, const std::string& name, const auto& value, const auto& expected) {
        if (!fine && found.empty()) found = ig::message("--", name, " is ", value, ", expected ", expected);
    };
    each_option(o,
                [&]<class V>(const char* name, const V& value, Kind kind, const char*, const auto& choices) {
                    if constexpr (std::is_same_v<V, std::string>) {
                        const bool free = choices.empty() || (value.empty() && kind == Kind::run);
                        require(free || std::count(choices.begin(), choices.end(), value) > 0, name,
                                ig::in_quotes(value), "one of its values, which --help lists");
                    }
                });
    const auto require_size = [&](const char* name, ig::Index n) {
        require(n >= 1, name, n, "at least 1");
        require(n <= most_size, name, n, ig::message("at most ", most_size));
    };
    for (const auto n : o.units) require_size("units", n);  // before values derived from them
    for (const auto& [name, n] :
         {std::pair("layers", o.layers.value_or(0)), std::pair("depth", o.depth),
          std::pair("embedding", o.embedding), std::pair("batch", o.batch), std::pair("bptt", o.bptt)})
        require_size(name, n);
    require(o.units.size() == 1 || o.layers == std::ssize(o.units), "units", to_json(o.units).dump(),
            ig::message("one number for all of --layers ", o.layers.value_or(0), ", or one for each"));
    require(o.rounds >= 0 && o.rounds <= 8, "rounds", o.rounds, "0 to 8");
    require(o.rank >= 0 && o.rank <= most_size, "rank", o.rank, ig::message("0 to ", most_size));
    if (sparse(o)) {
        const ig::Index most = *std::min_element(o.units.begin(), o.units.end());
        require(o.edges >= 1 && o.edges <= most, "edges", o.edges, ig::message("1 to --units, ", most));
        require(o.bound >= 0 && o.bound < 1e6, "bound", o.bound, "0 or more and below 1e6");
    }
    require(o.shards >= 1 && o.shards <= o.batch, "shards", o.shards, ig::message("1 to --batch, ", o.batch));
    require(o.threads >= 1 && o.threads <= ig::most_threads, "threads", o.threads,
            ig::message("1 to ", ig::most_threads));
    require(o.precision != "bf16" || !o.portable, "precision", o.precision, "fp32 with --portable");
    require(o.epochs >= 1, "epochs", o.epochs, "at least 1");
    require(o.init > 0 && o.init < 1e6, "init", o.init, "a number above 0 and below 1e6");
    require(o.decay_from >= 0, "decay-from", o.decay_from, "0 or more");
    if (o.decay)
        require(*o.decay > 0 && *o.decay <= 1 && (*o.decay < 1 || o.schedule != "plateau"), "decay", *o.decay,
                o.schedule != "plateau" ? "a number above 0 and at most 1" : "a number above 0 and below 1");
    if (o.keep_between)
        require(*o.keep_between > 0 && *o.keep_between <= 1, "keep-between", *o.keep_between,
                "above 0 and at most 1");
    require(o.warm_up >= 0 && o.warm_up < 1, "warm-up", o.warm_up, "0 or more and below 1");
    require(o.keep_weights > 0 && o.keep_weights <= 1, "keep-weights", o.keep_weights,
            "above 0 and at most 1");
    require(o.checkpoint_every >= 1, "checkpoint-every", o.checkpoint_every, "at least 1");
    require(o.epsilon >= 0 && o.epsilon < 1, "epsilon", o.epsilon, "0 or more and below 1");
    require(o.patience >= 0, "patience", o.patience, "0 or more");
    require(o.runaway == 0 || (o.runaway > 1 && o.runaway < 1e300), "runaway", o.runaway,
            "0, or a number above 1 and below 1e300");
    for (const auto& [name, keep] :
         {std::pair("keep", std::optional(o.keep)), std::pair("keep-input", o.keep_input),
          std::pair("keep-state", o.keep_state), std::pair("keep-output", o.keep_output)})
        require(!std::isnan(keep.value_or(1)), name, "nan", "a number above 0 and at most 1");
    const Keeps k = keeps(o);
    if (const double output = o.keep_output.value_or(k.state); o.scheme == "tied")
        require(output == k.state, "keep-output", output,
                ig::message(
                    "the same as --keep-state, ", k.state,
                    ": under --scheme tied the mask of the last layer's states is also the one before the "
                    "head. Leave it out, or use --scheme recurrent"));
    if (const double input = o.keep_input.value_or(k.state); o.scheme == "gal")
        require(input == k.state, "keep-input", input,
                ig::message(
                    "the same as --keep-state, ", k.state,
                    ": under --scheme gal a layer has one probability for the masks on its input and on its "
                    "states. Leave it out, or use --scheme recurrent"));
    return found;
}

/// Fills in the defaults that depend on other options, and checks what the library does not. `bundled`: the
/// training uses the bundled text; `ranks`: processes that share it, 0 without mpirun.
inline void settle(Options& o, bool bundled, ig::Index ranks = 0) {
    if (o.shards == 0) o.shards = ranks == 0 ? 1 : std::min(o.batch, std::max<ig::Index>(ranks, 4));
    if (o.shards >= 1 && o.shards < ranks)  // fault() reports what is below 1
        throw ig::UsageError(ig::message("--shards is ", o.shards, ", expected at least the ", ranks,
                                         " ranks that mpirun has started: each takes one or more of them, ",
                                         "and a shard one or more of the columns of --batch, ", o.batch));
    if (!o.layers) o.layers = o.units.size() == 1 ? 2 : std::ssize(o.units);
    if (std::ssize(o.units) == *o.layers) even(o.units);
    if (o.embedding == 0) o.embedding = o.units.back();
    if (o.loss == "al" && !o.gamma && !o.alpha) o.gamma = 0.65;
    if (o.loss == "mixture" && !o.beta)
        throw ig::UsageError("--loss mixture needs --beta, the share of the augmented loss, 0 to 1");
    if (!o.min_count) o.min_count = bundled ? 2 : 1;
    const bool natural = o.update == "ruop" || o.update == "rbpm";
    if (natural && o.head == "tied" && o.freeze)
        throw ig::UsageError(ig::message("--update ", o.update,
                                         " with --freeze needs --head free: a tied table would be all that "
                                         "the metric of the head has"));
    if (o.update == "ruop" && o.epsilon > 0)
        throw ig::UsageError(
            "--update ruop needs --epsilon 0: it squares gradients, and squares of samples are too large; or "
            "use rbpm");
    if (o.subspace && o.head == "tied")
        throw ig::UsageError(
            "--subspace needs --head free: with --head tied word vectors and softmax are one table, and the "
            "distance is 0");
    if (o.freeze && o.vectors.empty() && o.start.empty() && o.start_from.empty())
        throw ig::UsageError(
            "--freeze is given without --vectors, --start or --start-from: the word vectors would stay "
            "random");
    // an rnn that begins as a system is destroyed by a rate of 1 within an epoch; the other cells are not
    if (!o.rate)
        o.rate = o.update == "adam" || natural         ? 0.001
                 : o.update == "muon"                  ? 0.02
                 : !o.start.empty() && o.cell == "rnn" ? 0.1
                                                       : 1;
    if (o.precision == "auto")  // a training keeps its first choice wherever it is resumed
        o.precision = !o.portable && ig::fastest_precision<float>() == ig::Precision::bf16 ? "bf16" : "fp32";
    if (!o.decay) o.decay = o.schedule == "plateau" ? 0.25 : 0.9;
    if (const auto found = fault(o); !found.empty()) throw ig::UsageError(found);
}

}  // namespace lm
