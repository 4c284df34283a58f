// Trains a network on a synthetic source of known entropy rate, or on a given text, for a given computing
// time.
//
//     synthetic --task music --network glnn --metric ruop --units 20 --length 50000 --seconds 60
//     synthetic --text train.txt --valid valid.txt --chars --units 100 --seconds 600 --save model.safetensors

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>

#include "../shared/csv_log.hpp"
#include "../shared/program.hpp"
#include "curve.hpp"
#include "far_worse.hpp"
#include "full_batches.hpp"
#include "hmm.hpp"
#include "minibatches.hpp"
#include "model_file.hpp"
#include "texts.hpp"
#include "verdict.hpp"

namespace {

using isogloss::DataError;
using isogloss::message;

// Processor seconds of this process, independent of other load.
double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void write(const std::string& path, const Text& text) {
    std::string shown;
    for (const Token v : text.x) shown += text.shown(v);
    isogloss::file::OutputFile out(path);
    out.write(shown);
    out.commit();
}

std::unique_ptr<Learner> make_learner(const Options& o, const Text& train) {
    if (o.network == "hmm") return std::make_unique<Markov>(o, train);
    if (o.sparse() && o.training == "full") return std::make_unique<FullBatches>(o, train);
    return std::make_unique<Minibatches>(o, train);
}

// Warns if a model predicts another text far worse than its training text.
void warn(const Foreseen& trained, const Foreseen& other, const char* when) {
    if (!far_worse(trained.bits, other.bits, other.success)) return;
    std::fprintf(
        stderr,
        "synthetic: warning: %s another text has %.3g bits a symbol, the training text %.3g; %.0f %% of the "
        "units are saturated. Units that stay at a bound of their range are constants, set by the first "
        "symbols of a text: train on more columns (--columns), or bound V (--bound 4). If few units are, "
        "or the text has few lines, it has been memorised: use a longer one, or fewer units "
        "and edges\n",
        when, other.bits, trained.bits, 100 * other.saturated);
}

// Trains for `seconds` more seconds and at most `rounds` more rounds (0: any number), and leaves the learner
// in its best state. Progress goes to `shown`; `record` takes rows of the learning curve.
template <class Record> void train(Learner& learner, Progress& at, double seconds, Index rounds,
                                   const Texts& texts, std::FILE* shown, Record&& record) {
    Foreseen seen, chosen;
    const auto look = [&] {
        seen = learner.foresee(texts.train), chosen = learner.foresee(texts.choice);
        if (chosen.bits < at.bits) at.bits = chosen.bits, learner.keep();
        std::fprintf(shown,
                     "%8.1f s  %6lld rounds  training %.5f  choice %.5f  success %.4f  saturated %.2f  %s\n",
                     at.seconds, static_cast<long long>(at.rounds), seen.bits, chosen.bits, chosen.success,
                     chosen.saturated, learner.state().c_str());
        std::fflush(shown);
        record(seen, chosen);
    };
    const double begin = at.seconds, end = begin + seconds;
    const std::uint64_t last = at.rounds + static_cast<std::uint64_t>(rounds);
    look();
    for (double next = begin; at.seconds < end && (rounds == 0 || at.rounds < last) && !interrupt::wanted;) {
        learner.prepare((at.seconds - begin) / seconds);
        const double start = computed();
        learner.round();
        at.seconds += computed() - start;
        ++at.rounds;
        const bool over = at.seconds >= end || (rounds > 0 && at.rounds == last) || interrupt::wanted;
        if (at.seconds < next && !over) continue;
        const double before = computed();
        look();
        next = at.seconds + std::max(seconds / 40, 4 * (computed() - before));  // at most a fifth of the time
    }
    warn(seen, chosen, "at the end of training");
    learner.stop();
}

int run(const Options& o, const std::optional<isogloss::io::Safetensors>& file) {
    const bool writes = !o.write.empty(), trains = o.seconds > 0 || !file;
    const Texts texts =
        o.level == "task"
            ? drawn_texts(o)
            : own_texts(o, std::string(file ? file->characters("state/symbols") : std::string_view()));
    if (writes) {
        write(o.write + ".train", texts.train);
        write(o.write + ".valid", texts.valid);
        const double source = tasks::source_bits(texts.valid);
        if (o.json)
            std::cout << program::dump({{"source_bits", source}, {"entropy_bits", texts.entropy}})
                      << std::endl;
        else std::printf("source_bits=%.5f entropy_bits=%.5f\n", source, texts.entropy);
        return 0;
    }
    std::FILE* const shown = o.json ? stderr : stdout;
    std::fprintf(shown, "%s, %td units%s, %s\n", o.network.c_str(), o.units,
                 o.sparse() ? message(", ", o.edges, " edges").c_str() : "", o.method().c_str());
    const files::CsvLog csv(o.csv, Curve::header, [](std::string_view) { return false; });
    Curve curve;
    interrupt::catch_signals();
    std::unique_ptr<Learner> learner;  // the best so far
    Progress best;
    double used = 0;
    std::uint64_t rounds = 0;
    std::string symbols = texts.symbols;
    for (Index start = 0; start < o.starts && !(interrupt::wanted && learner); ++start) {
        Options own = o;
        own.seed += static_cast<std::uint64_t>(1000 * start);
        auto candidate = make_learner(own, texts.train);
        Progress at;
        if (file) {
            // Without the training text no training state can be restored.
            const bool all = !texts.own() || !o.text.empty() || o.network == "hmm";
            checkpoint(*candidate, at, symbols)
                .load(*file, all ? isogloss::io::Restore::everything : isogloss::io::Restore::parameters);
            if (trains) candidate->go_on();
        }
        const std::uint64_t before = at.rounds;
        const double seconds_before = at.seconds;
        if (trains)
            train(
                *candidate, at, o.seconds / static_cast<double>(o.starts), o.rounds, texts, shown,
                [&](const Foreseen& seen, const Foreseen& chosen) {
                    csv.append(message(used + at.seconds, ',', rounds + at.rounds, ',', seen.bits, ',',
                                       chosen.bits, ',', chosen.success, ',', start, ',', chosen.saturated));
                    curve.add({used + at.seconds, seen.bits, chosen.bits, start});
                });
        used += at.seconds - seconds_before, rounds += at.rounds - before;
        if (!learner || at.bits < best.bits) learner = std::move(candidate), best = at;
    }
    if (!o.curve.empty()) curve.draw(o.curve, message(o.network, ", ", o.method()), texts.entropy, o.beside);
    const Verdict verdict{learner->foresee(texts.train),
                          learner->foresee(texts.valid),
                          texts.longer ? std::optional(learner->foresee(*texts.longer)) : std::nullopt,
                          o.sample > 0 ? drawn(*learner, o, texts.train) : std::string(),
                          rounds,
                          used,
                          !texts.own() || !o.text.empty()};
    warn(verdict.trained, verdict.valid, "at the best moment");
    if (!o.save.empty()) checkpoint(*learner, best, symbols).save(o.save, metadata(o));
    if (o.json) std::cout << program::dump(as_json(verdict, o, texts)) << std::endl;
    else print(verdict, texts);
    return interrupt::wanted ? interrupt::status() : 0;
}

// Takes the stored options from a file. Throws DataError if a given option differs.
void take_stored(Options& o, const CLI::App& app, const isogloss::io::Safetensors& file) {
    Options stored = stored_options(file);
    nlohmann::json of_file;
    each_stored(stored, [&](const char* name, const auto& value, const char*) { of_file[name] = value; });
    each_stored(o, [&](const char* name, auto& value, const char*) {
        const nlohmann::json given = value;
        if (app.count(name) > 0 && given != of_file[name])
            throw DataError(message(name, " is ", given.dump(), ", but the model in '", o.load, "' has ",
                                    of_file[name].dump(), "; leave ", name, " out"));
        of_file[name].get_to(value);
    });
    const bool words = stored.level == "words";
    if ((o.chars && stored.level != "chars") || (o.words && !words))
        throw DataError(message(o.chars ? "--chars" : "--words", " is given, but the model in '", o.load,
                                "' is of ", stored.level, "; leave it out"));
    o.level = stored.level;
    if (o.starts > 1)
        throw DataError(message("--starts is ", o.starts, ", but the model in '", o.load,
                                "' has already started training; leave --starts out"));
    if (app.count("--seconds") == 0 && app.count("--rounds") == 0) o.seconds = 0;  // only evaluate
    o.doublings = 0;                                                               // its text is complete
}

// Throws DataError for incompatible options.
void require_together(const Options& o, const CLI::App& app, bool loaded) {
    const bool trains = o.seconds > 0 || !loaded, own = o.level != "task";
    std::string wrong = fault(o);
    if (!(o.seconds >= 0) || o.rounds < 0 || o.sample < 0)
        wrong = message("found seconds = ", o.seconds, ", rounds = ", o.rounds, ", sample = ", o.sample,
                        "; expected numbers of at least 0");
    if (!(o.anneal >= 0 && o.anneal <= 1)) wrong = message("found anneal = ", o.anneal, ", expected 0 to 1");
    for (const char* name : task_options)
        if (own && app.count(name) > 0)
            wrong = message(
                name, " is given for a text of your own, but it applies to texts drawn by a task; leave ",
                name, " out", loaded ? "" : ", or --text and --valid");
    if (!own && !loaded && app.count("--min-count") > 0)
        wrong = "--min-count is given without --text, and the symbols of a task are fixed; leave it out";
    if (o.chars && o.words) wrong = "--chars and --words are both given; choose one";
    if (own && o.valid.empty()) wrong = "--valid is missing: the text to validate on";
    if (own && trains && o.text.empty()) wrong = "--text is missing: the text to train on";
    if (!own && (!o.text.empty() || !o.valid.empty()))
        wrong = message("the model in '", o.load, "' is of task ", o.task,
                        ", which draws its texts; leave --text "
                        "and --valid out");
    if (!own && !loaded && (o.chars || o.words)) wrong = "--chars and --words are for --text";
    if (own && !o.write.empty()) wrong = "--write writes the texts of a task; leave it out, or --text";
    if (!wrong.empty()) throw DataError(wrong);
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app("Networks on synthetic sources of known entropy rate, or on a text of your own");
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    each_stored(o, [&](const char* name, auto& value, const char* help) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) app.add_flag(name, value, help);
        else app.add_option(name, value, help);
    });
    app.add_option("--text", o.text, "file to train on, in place of a task");
    app.add_option("--valid", o.valid, "file that chooses the best moment and is reported");
    app.add_flag("--chars", o.chars, "--text: its symbols are characters (the default)");
    app.add_flag("--words", o.words, "--text: its symbols are words and line ends");
    app.add_option("--save", o.save, "file for the model and all that its training needs");
    app.add_option("--load", o.load,
                   "model of an earlier call: evaluate it, or continue training for --seconds or --rounds");
    app.add_option("--seconds", o.seconds, "computing time");
    app.add_option(
        "--anneal", o.anneal,
        "minibatches: rates are full for this share of --seconds, and then fall to 0; 1: to the end");
    app.add_option("--rounds", o.rounds,
                   "maximum number of rounds: segments, full batches or steps of Baum-Welch; 0: any");
    app.add_option("--starts", o.starts,
                   "networks that share the time, one after the other; the best on a second text counts")
        ->check(CLI::Range(1, 1000));
    app.add_option("--doublings", o.doublings,
                   "full batches: train on a text that doubles this many times up to its full length")
        ->check(CLI::Range(0, 20));
    app.add_option("--sample", o.sample, "symbols to draw from the trained model");
    app.add_option("--csv", o.csv, "file for the learning curve");
    app.add_option(
        "--curve", o.curve,
        "SVG file for the learning curve as a figure, with the entropy rate as a line (needs gnuplot)");
    app.add_option("--beside", o.beside,
                   "--curve: learning curves of other calls (their --csv), drawn beside it")
        ->take_all();
    app.add_option("--write", o.write, "write the texts to PATH.train and PATH.valid and exit");
    app.add_flag("--json", o.json,
                 "for programs: the result as one object of JSON, progress on standard error");
    app.add_flag("--overwrite", o.overwrite, "--write even if files of these names exist");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    std::optional<isogloss::io::Safetensors> file;
    if (!o.load.empty()) {
        file = isogloss::io::Safetensors::open(o.load);
        take_stored(o, app, *file);
    } else if (!o.text.empty() || !o.valid.empty()) {
        o.level = o.words ? "words" : "chars";
    }
    require_together(o, app, file.has_value());
    const bool writes = !o.write.empty();
    files::Outputs()
        .read("--load", o.load)
        .read("--text", o.text)
        .read("--valid", o.valid)
        .write("--csv", o.csv, files::table("learning curve of synthetic", Curve::header))
        .read("--beside", o.beside)
        .write("--curve", o.curve, plot::kind())
        .write("--save", o.save, model_kind())
        .write_unmarked("--write", writes ? o.write + ".train" : "", o.overwrite)
        .write_unmarked("--write", writes ? o.write + ".valid" : "", o.overwrite)
        .check();
    return run(o, file);
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
