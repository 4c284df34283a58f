/// @file train.cpp  The command `train`: its options, checks and start values.
#include <cstddef>
#include <isogloss/utf8.hpp>
#include <utility>

#include "../shared/lock.hpp"
#include "presets.hpp"
#include "training.hpp"

namespace lm {

namespace {

/// The options that a model to start from determines: those of Kind::model and the dropout of weights, the others at
/// their defaults.
Options options_of_model(const Options& stored) {
    std::set<std::string> of_model;
    each_option(stored, [&](const char* name, const auto&, Kind kind, auto&&...) {
        if (kind == Kind::model || std::string_view(name) == "keep-weights") of_model.insert(name);
    });
    Options o;
    copy_named(stored, o, of_model);
    return o;
}

/// The option that names a file to start from, and the file.
std::pair<const char*, std::string> source_of(const Options& o) {
    return o.start.empty() ? std::pair("--start-from", o.start_from) : std::pair("--start", o.start);
}

/// Throws unless the parameters of a model to start from fit this one.
void require_same_architecture(const Options& o, const Options& model) {
    std::set<std::string> which = {"cell", "layers", "units", "embedding", "head", "level", "unit-rows"};
    if (o.cell == "rhn" && o.start.empty()) which.insert("depth");  // a system has none
    if (sparse(o) && o.start.empty()) which.insert("edges");
    if (o.start.empty()) which.insert({"rounds", "rank"});
    if (o.head == "tied") which.insert("head-bias");
    const auto differ = differences(o, model, which);
    const auto [name, file] = source_of(o);
    if (!differ.empty())
        throw ig::UsageError(ig::message(name, ": '", file, "' is another kind of model: ", differ,
                                         ". Leave these options out, or train without ", name));
}

/// The options that are fixed once a training with these has begun.
std::set<std::string> fixed_options(const Options& o) {
    std::set<std::string> fixed;
    each_option(o, [&](const std::string& name, const auto&, Kind kind, auto&&...) {
        const bool in_rate = name == "epochs" && o.schedule == "one-cycle";  // sets the rate of every step
        if (kind != Kind::run || in_rate) fixed.insert(name);
    });
    return fixed;
}

/// The options of this run: those of the command line override a preset, which overrides those of the model or
/// system to start from, or the defaults. A training that is resumed keeps those stored. The table takes the width of given word vectors.
Options resolve(const Options& given, const std::set<std::string>& named, const Options* stored,
                const StartValues& from, ig::Index ranks) {
    std::optional<Options> start;
    if (!stored && !given.start_from.empty())
        start = stored_options(ig::io::Safetensors::open(given.start_from));
    if (from.system) start = options_of_system(*from.system, given.cell);
    Options o = stored ? *stored : start ? options_of_model(*start) : Options{};
    if (stored && named.contains("corpus") && !named.contains("train") && !stored->train.empty())
        throw ig::UsageError(ig::message("--resume: '", given.model, ".train' was begun with --train ",
                                         ig::in_quotes(stored->train), ", not with --corpus ", given.corpus,
                                         " alone; leave --corpus out"));
    if (!given.corpus.empty()) o.corpus = given.corpus;
    const bool preset = !given.preset.empty() && !stored;
    if (stored && !given.preset.empty() && stored->preset != given.preset)
        throw ig::UsageError("--resume: '", given.model, ".train' was begun ",
                             stored->preset.empty() ? "without --preset" : "with --preset " + stored->preset,
                             ", not with --preset ", given.preset, "; leave --preset out");
    if (preset) {
        if (o.corpus.empty() && given.train.empty()) o.corpus = "ptb";
        apply_preset(o, given.preset, o.corpus);
        if (named.contains("units") && !named.contains("embedding")) o.embedding = 0;
    }
    if (given.units.size() > 1 && !named.contains("layers")) o.layers.reset();  // the list gives their number
    if (start || preset) {  // named options replace equivalent ones there
        if (named.contains("alpha") && !named.contains("gamma")) o.gamma.reset();
        if (named.contains("gamma") && !named.contains("alpha")) o.alpha.reset();
        if (named.contains("schedule") && given.schedule != o.schedule) o.decay.reset();
        if (named.contains("keep"))
            o.keep_input = o.keep_between = o.keep_state = o.keep_output = std::nullopt;
        if (named.contains("scheme") && given.scheme == "tied") o.keep_output.reset();  // it has none
        if (named.contains("scheme") && given.scheme == "gal") o.keep_input.reset();
        if (named.contains("update") && given.update != "sgd" && given.update != "asgd")
            o.rate.reset();  // that of a preset is for sgd
    }
    copy_named(given, o, named);
    if (stored && o.precision == "auto") o.precision = stored->precision;
    if (preset && start && !named.contains("head-bias")) o.head_bias = start->head_bias;
    if (from.vectors && !start && !named.contains("embedding")) o.embedding = from.vectors->dimension;
    if (ranks > 0 && !named.contains("threads")) o.threads = 1;  // the ranks share the cores
    settle(o, o.train.empty() && o.corpus.empty(), ranks);
    if (start) require_same_architecture(o, *start);
    if (!stored) return o;
    const auto differ = differences(o, *stored, fixed_options(o));
    if (!differ.empty())
        throw ig::UsageError(ig::message("--resume: '", given.model, ".train' was begun with other options: ",
                                         differ, ". Leave them out, or start over without --resume"));
    return o;
}

/// Throws if a new training names an option that has no effect with the others.
void require_effect(const Options& o, const std::set<std::string>& named) {
    const auto require = [&](bool fine, const char* name, const std::string& what) {
        if (!fine && named.contains(name))
            throw ig::UsageError(
                ig::message("--", name, " has no effect with ", what, "; leave one of them out"));
    };
    for (const char* name : {"gamma", "alpha"}) require(o.loss == "al", name, "--loss " + o.loss);
    require(o.loss == "mixture", "beta", "--loss " + o.loss);
    for (const char* name : {"temperature", "target"}) require(o.loss != "ce", name, "--loss " + o.loss);
    require(o.head == "tied", "head-bias", "--head " + o.head + ", which always has one");
    const std::string source = source_of(o).first;
    const bool starts = !o.start.empty() || !o.start_from.empty();
    require(o.start.empty(), "start-from", "--start");
    require(o.start_from.empty(), "init", "--start-from, whose weights they are");
    require(o.start.empty() || o.cell != "rnn", "init",
            "--start and --cell rnn, all of which is the system's");
    require(o.train.empty() || !o.preset.empty(), "corpus", "--train and without --preset");
    const bool each_place = named.contains("keep-state") &&
                            (o.scheme == "gal" || named.contains("keep-input")) &&
                            (o.scheme == "tied" || named.contains("keep-output"));
    require(!each_place, "keep", "that of every place by itself");
    for (const char* name : {"min-count", "max-vocabulary", "vocabulary"})
        require(!starts, name, source + ", whose vocabulary it is");
    for (const char* name : {"min-count", "max-vocabulary"})
        require(o.vocabulary.empty(), name, "--vocabulary");
    require(o.cell == "rhn", "depth", "--cell " + o.cell);
    require(o.cell == "lstm" || o.cell == "gru", "rounds", "--cell " + o.cell);
    require(o.rounds > 0, "rank", "--rounds 0");
    for (const char* name : {"edges", "bound"}) require(sparse(o), name, "--cell " + o.cell);
    require(!sparse(o), "keep-weights", "--cell " + o.cell + ", which has no recurrent matrix");
    require((!sparse(o) && o.cell != "qrnn") || o.scheme != "recurrent", "keep-state",
            "--cell " + o.cell + " and --scheme recurrent: no mask is inside");
    const bool natural = o.update == "ruop" || o.update == "rbpm", muon = o.update == "muon";
    for (const char* name : {"head-rate", "table-rate"})
        require(natural || (muon && name[0] == 't'), name, "--update " + o.update);
    for (const char* name : {"damping", "floor"}) require(natural, name, "--update " + o.update);
    require(!o.freeze || muon, "table-rate", "--freeze");
    require(!natural || o.head == "free", "table-rate", "--head tied: the table has the rate of the head");
    require(!natural || o.head == "free", "weight-decay",
            "--update " + o.update + " and --head tied: it is that of word vectors by adam");
    require(!o.freeze, "target", "--freeze: the table that it is read off does not move");
    require(!(natural && o.freeze), "weight-decay",
            "--update " + o.update + " and --freeze: it is that of the word vectors alone");
    require(!starts, "vectors", source + ", whose word vectors they are");
    require(o.schedule == "decay", "decay-from", "--schedule " + o.schedule);
    require(o.schedule != "one-cycle", "decay", "--schedule " + o.schedule);
    require(o.schedule == "one-cycle", "warm-up", "--schedule " + o.schedule);
    require(o.scheme == "recurrent", "keep-between", "--scheme " + o.scheme);
    require(*o.layers > 1, "keep-between", "--layers 1");
    if (o.unit_rows && (o.update == "asgd" || o.two_tailed) && !o.freeze)
        throw ig::UsageError(
            std::string("--unit-rows holds word vectors at norm 1, which the averages of --") +
            (o.two_tailed ? "two-tailed" : "update asgd") + " are not; leave one of them out");
    if (o.two_tailed && o.update == "asgd")
        throw ig::UsageError("--two-tailed: found --update asgd, which averages by itself; expected another");
}

/// Throws if a file that --resume opens again has a name that is not UTF-8, which cannot be stored.
void require_utf8(const Options& o) {
    for (const auto& [name, path] :
         {std::pair("train", o.train), std::pair("valid", o.valid), std::pair("test", o.test),
          std::pair("log", o.log), std::pair("vocabulary", o.vocabulary), std::pair("start", o.start),
          std::pair("start-from", o.start_from), std::pair("vectors", o.vectors)})
        if (ig::bad_byte(path))
            throw ig::UsageError(
                ig::message("--", name, " ", ig::in_quotes(path),
                            " is not UTF-8, and --resume could not find it again; give the file ",
                            "another name, or a link to it"));
}

/// Throws unless all files that a training writes may be written.
void require_outputs(const Options& o) {
    const Texts texts = find_texts(o);
    files::Outputs()
        .read("--train", texts.train.path)
        .read("--valid", texts.valid.path)
        .read("--test", texts.test ? texts.test->path : "")
        .read("--vocabulary", o.vocabulary)
        .read("--start", o.start)
        .read("--start-from", o.start_from)
        .read("--vectors", o.vectors)
        .write("--model", o.model, model_kind())
        .write("--model", o.model + ".train", training_kind())
        .lock("--model", o.model)
        .write("--log", o.log, Log::kind())
        .check();
}

/// Throws if starting anew would destroy a training, unfinished or finished.
void require_nothing_lost(const std::string& model, const std::string& state) {
    const auto refuse_model = [&] {
        if (files::has_content(model))
            throw ig::FileError(
                ig::message("--model '", model,
                            "' already exists; it was left unchanged. Give --model another name, "
                            "or add --overwrite"));
    };
    if (!files::has_content(state)) return refuse_model();
    const auto file = ig::io::Safetensors::open(state);
    const auto epoch = file.scalar<std::uint64_t>("state/epoch"),
               batch = file.scalar<std::uint64_t>("state/batch");
    const auto stored = stored_options(file);
    const auto epochs = stored.epochs;
    const bool stopped =
        stop_of(stored, epoch, file.scalar<std::uint64_t>("state/best_epoch"),
                file.scalar<double>("state/best"), file.scalar<double>("state/health/validation"),
                stored_vocabulary(file).size()) != Stop::none;
    if (static_cast<ig::Index>(epoch) <= epochs && !stopped)
        throw ig::FileError(ig::message("'", state, "' holds a training that stopped in epoch ", epoch,
                                        " of ", epochs, ", after batch ", batch,
                                        ". Continue with --resume, or start over with --overwrite"));
    refuse_model();
}

/// The system in the file of --start.
System system_of(const std::string& file) {
    try {
        return ig::lds::load_lds<float>(file);
    } catch (const ig::Error& error) {
        throw ig::FileError(
            "--start: ", error.text(),
            ". Expected the file that `lds_text fit` writes as its --model; a model of this program "
            "is for --start-from");
    }
}

// The command on one of its ranks. The first alone checks files, before any rank continues: the others would
// find files that it has begun to write.
int train_on(Ranks& ranks, const Options& given, const std::set<std::string>& named,
             const Training::OnEpoch& on_epoch) {
    const std::string state = given.model + ".train";
    if (given.resume && given.overwrite)
        throw ig::UsageError(
            "--resume continues a training and --overwrite begins it again; give one of them");
    std::optional<files::Lock> lock;
    if (ranks.first()) {
        files::Outputs().write_unmarked("--model", given.model, true).check();  // its folder, for the lock
        lock.emplace("--model", given.model);
        files::remove_abandoned(state);
    }
    std::optional<Training> training;
    const auto begin = [&](const ig::io::Safetensors* file) {
        const auto stored = file ? std::optional(stored_options(*file)) : std::nullopt;
        StartValues start;
        if (!file && !given.vectors.empty()) start.vectors = ig::io::read_word_vectors(given.vectors);
        if (!file && !given.start.empty()) start.system = system_of(given.start);
        Options o =
            resolve(given, named, stored ? &*stored : nullptr, start, Ranks::launched() ? ranks.size() : 0);
        // `auto` is a measurement, which may come out differently on another rank.
        std::byte bf16{o.precision == "bf16"};
        ranks.broadcast({&bf16, 1}, 0);
        o.precision = bf16 == std::byte{1} ? "bf16" : "fp32";
        require_utf8(o);
        if (!file) require_effect(o, named);
        if (ranks.first()) {
            require_outputs(o);
            if (!file && given.resume && files::has_content(given.model))
                throw ig::FileError(ig::message("--resume: '", given.model, "' exists, but no training in '",
                                                state, "': one from the beginning ",
                                                "would overwrite the model. Put the file beside it, begin "
                                                "from the model with --start-from and another --model, or ",
                                                "leave --resume out"));
            if (!file && !given.overwrite) require_nothing_lost(given.model, state);
        }
        if (!file && given.resume)
            std::cout << "resume      '" << state
                      << "' holds no training yet: the training starts from the beginning\n";
        ranks.barrier();
        training.emplace(ranks, o, file, start);
    };
    if (given.resume && files::has_content(state)) {
        const auto file = ig::io::Safetensors::open(state);
        begin(&file);
    } else {
        begin(nullptr);
    }
    return training->run(on_epoch);
}

}  // namespace

int train(const Options& given, const std::set<std::string>& named,
          const std::function<void(const Row&)>& on_epoch) {
    Options options = given;
    std::set<std::string> of_call = named;
    // Of the process, where a module of Python may have set it; a training sets it for itself alone.
    const struct Mode {
        bool portable = ig::portable();
        ~Mode() { ig::portable(portable); }
    } before;
    if (before.portable) {
        options.portable = true;
        of_call.insert("portable");
    }
    Ranks ranks;
    return ranks.guard([&] { return train_on(ranks, options, of_call, on_epoch); });
}

}  // namespace lm
