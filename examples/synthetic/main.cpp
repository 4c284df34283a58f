// Trains a network on a synthetic source for a given computing time, and says how far it is from the source's
// entropy rate.
//
//     synthetic --task music --network glnn --metric rbpm --units 20 --length 50000 --seconds 60

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <isogloss/file/output_file.hpp>
#include <memory>
#include <optional>

#include "../shared/csv_log.hpp"
#include "../shared/program.hpp"
#include "cells.hpp"
#include "hmm.hpp"
#include "sparse.hpp"

namespace {

// Seconds of computing time of this process, whatever else the machine does.
double computed() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

constexpr const char* csv_header = "seconds,rounds,training_bits,choice_bits,success,start";

void write(const std::string& path, const Text& text) {
    std::string shown;
    for (const Token v : text.x) shown += text.shown(v);
    isogloss::file::OutputFile out(path);
    out.write(shown);
    out.commit();
}

std::unique_ptr<Learner> make_learner(const Options& o, const Text& train, Index longest_text) {
    if (o.network == "hmm") return std::make_unique<Markov>(o, train);
    if (o.network == "lstm") return std::make_unique<Cells>(o, train);
    return std::make_unique<Sparse>(o, train, longest_text);
}

struct Trained {
    double seconds = 0;
    Index rounds = 0;
    double bits = 1e300;  // on the text that chooses, at the best moment
};

// Trains for so many seconds and leaves the learner as it was at its best moment. `record` takes rows of the
// learning curve.
template <class Record>
Trained train_one(Learner& learner, double seconds, const Text& train, const Text& choice, Record&& record) {
    Trained t;
    const auto look = [&] {
        const Foreseen seen = learner.foresee(train), chosen = learner.foresee(choice);
        if (chosen.bits < t.bits) t.bits = chosen.bits, learner.keep();
        std::printf("%8.1f s  %6td rounds  training %.5f  choice %.5f  success %.4f  %s\n", t.seconds,
                    t.rounds, seen.bits, chosen.bits, chosen.success, learner.state().c_str());
        std::fflush(stdout);
        record(t, seen, chosen);
    };
    look();
    for (double next = 0; t.seconds < seconds;) {
        learner.prepare(t.seconds / seconds);
        const double start = computed();
        learner.round();
        t.seconds += computed() - start;
        ++t.rounds;
        if (t.seconds < next && t.seconds < seconds) continue;
        const double before = computed();
        look();
        next = t.seconds + std::max(seconds / 40, 4 * (computed() - before));  // a fifth of all, at most
    }
    learner.restore();
    return t;
}

int run(const Options& o) {
    const bool writes = !o.write.empty();
    files::Outputs()
        .write("--csv", o.csv, files::table("learning curve of synthetic", csv_header))
        .write_unmarked("--write", writes ? o.write + ".train" : "", o.overwrite)
        .write_unmarked("--write", writes ? o.write + ".valid" : "", o.overwrite)
        .check();
    const tasks::Task& task = o.named_task();
    const Index other = o.validation_length > 0 ? o.validation_length : o.length;
    // Independent texts: to train on, to choose the best moment by, and to report.
    tasks::Options shorter = o.source;
    shorter.fewest_bits = o.fewest_training_bits;
    const Text train = tasks::generate(task, shorter, 3 * o.seed, o.length, o.lines);
    const Text choice = tasks::generate(task, o.source, 3 * o.seed + 1, std::max<Index>(other / 4, 2000));
    const Text valid = tasks::generate(task, o.source, 3 * o.seed + 2, other);
    const double floor = tasks::entropy_rate(task, o.source);
    tasks::Options longer = o.source;
    std::optional<Text> long_lines;
    if (&task == &tasks::anbn && o.longest_validation > 0) {
        longer.shortest = o.source.longest, longer.longest = o.longest_validation;
        long_lines = tasks::generate(task, longer, 3 * o.seed + 2, other);
    }
    if (writes) {
        write(o.write + ".train", train);
        write(o.write + ".valid", valid);
        std::printf("entropy_bits=%.5f\n", floor);
        return 0;
    }
    const files::CsvLog csv(o.csv, csv_header, [](std::string_view) { return false; });
    std::unique_ptr<Learner> learner;  // the best so far
    double used = 0, least = 0;
    Index rounds = 0;
    for (Index start = 0; start < o.starts; ++start) {
        Options own = o;
        own.seed += static_cast<std::uint64_t>(1000 * start);
        own.seconds /= static_cast<double>(o.starts);
        auto candidate = make_learner(own, train, std::max(choice.size(), valid.size()));
        const Trained outcome = train_one(
            *candidate, own.seconds, train, choice,
            [&](const Trained& now, const Foreseen& seen, const Foreseen& chosen) {
                csv.append(isogloss::message(used + now.seconds, ',', rounds + now.rounds, ',', seen.bits,
                                             ',', chosen.bits, ',', chosen.success, ',', start));
            });
        used += outcome.seconds, rounds += outcome.rounds;
        if (!learner || outcome.bits < least) learner = std::move(candidate), least = outcome.bits;
    }
    const Foreseen trained = learner->foresee(train), verdict = learner->foresee(valid);
    if (long_lines) {
        const Foreseen seen = learner->foresee(*long_lines);
        std::printf("longer_bits=%.5f longer_entropy_bits=%.5f longer_success=%.4f\n", seen.bits,
                    tasks::entropy_rate(task, longer), seen.success);
    }
    if (o.sample > 0) std::printf("%s\n", learner->sample(o.sample, o.seed).c_str());
    std::printf("training_bits=%.5f rounds=%td seconds=%.1f\n", trained.bits, rounds, used);
    std::printf("validation_bits=%.5f entropy_bits=%.5f success=%.4f\n", verdict.bits, floor,
                verdict.success);
    return 0;
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app("Networks on synthetic sources of known entropy rate");
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    std::vector<std::string> names;
    for (const tasks::Task* task : tasks::all) names.emplace_back(task->name);
    app.add_option("--task", o.task, "source of the texts")->check(CLI::IsMember(names));
    app.add_option("--network", o.network)->check(CLI::IsMember({"glnn", "gnn", "rnn", "lstm", "hmm"}));
    app.add_option("--metric", o.metric)->check(CLI::IsMember({"ruop", "rbpm", "gradient"}));
    app.add_option("--form", o.form)->check(CLI::IsMember({"full", "quasi_diagonal", "diagonal"}));
    app.add_option("--activation", o.activation)->check(CLI::IsMember({"tanh", "logistic"}));
    app.add_option("--units", o.units, "units, or states of the hmm");
    app.add_option("--edges", o.edges, "edges that leave each unit, its loop among them");
    app.add_option("--length", o.length, "symbols of the training text");
    app.add_option("--lines", o.lines, "lines (rounds) of the training text; 0: as many as the length takes");
    app.add_option("--validation-length", o.validation_length,
                   "symbols of the validation text; 0: as training");
    app.add_option("--seconds", o.seconds, "computing time");
    app.add_option("--seed", o.seed);
    app.add_option("--starts", o.starts,
                   "networks that share the time, one after the other; the best on a second text counts")
        ->check(CLI::Range(1, 1000));
    app.add_option("--csv", o.csv, "file for the learning curve");
    app.add_option("--write", o.write, "writes the texts to PATH.train and PATH.valid and ends");
    app.add_flag("--overwrite", o.overwrite, "--write even where there are files of these names");
    app.add_option("--sample", o.sample, "symbols to draw from the trained model");
    app.add_option("--insert-digits", o.source.insert_digits, "alphabet: p1");
    app.add_option("--insert-capitals", o.source.insert_capitals, "alphabet: p2");
    app.add_option("--bits", o.source.bits, "xor: bits in a line");
    app.add_option("--training-bits-from", o.fewest_training_bits,
                   "xor: lines of the training text have from this many to --bits bits; 0: all have --bits");
    app.add_flag("--answer-only", o.source.answer_only, "xor: only the answer is predicted");
    app.add_option("--shortest", o.source.shortest, "anbn: least n");
    app.add_option("--longest", o.source.longest, "anbn: greatest n");
    app.add_option("--depth", o.source.depth, "dyck: most open brackets");
    app.add_option("--lag", o.source.lag, "copy: symbols back");
    app.add_option("--noise", o.source.noise, "copy: probability of any symbol instead");
    app.add_option("--validation-longest", o.longest_validation,
                   "anbn: validate on n from --longest to this too; 0: do not");
    app.add_option("--start-rate", o.start_rate, "first learning rate; 0: 1/units");
    app.add_option("--up", o.up, "factor of a rate after an accepted step");
    app.add_option("--down", o.down, "divisor of a rate after a cancelled step");
    app.add_option("--damping", o.damping, "of the metric's diagonal");
    app.add_option("--slowest", o.longest,
                   "slowest time scale at the start, geometric from 1; 0: 1, 2, ..., units");
    app.add_flag("--conjugate", o.conjugate, "conjugate directions of the metric");
    app.add_option("--doublings", o.doublings,
                   "glnn, gnn, rnn: train on a text that doubles so often up to its full length")
        ->check(CLI::Range(0, 20));
    app.add_option("--adam-rate", o.adam_rate, "lstm and minibatches: learning rate");
    app.add_option("--natural-rate", o.natural_rate, "lstm with ruop or rbpm: learning rate");
    app.add_option("--natural-damping", o.natural_damping, "lstm with ruop or rbpm: damping");
    app.add_option("--columns", o.columns, "minibatches: columns");
    app.add_option("--steps", o.steps, "minibatches: steps");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    if (!(o.seconds >= 0) || o.units < 1 || o.columns < 1 || o.steps < 1 || o.length < 2)
        throw isogloss::DataError(isogloss::message("found seconds = ", o.seconds, ", units = ", o.units,
                                                    ", columns = ", o.columns, ", steps = ", o.steps,
                                                    ", length = ", o.length,
                                                    "; expected seconds ≥ 0, length ≥ 2 and the others ≥ 1"));
    return run(o);
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
