/// @file main.cpp  How far the softmax matrix is from the embedding table after training, as β and τ vary.
///
/// Trains an untied LSTM language model on a stretch of text with the loss (6.1) of Inan, Khosravi, Socher
/// 2017,
///     J_tot = β τ² V J_aug + (1 - β) J,
/// word vectors of norm 1, no regularisation, and records the angles between the column spaces of both.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "../shared/data_folder.hpp"
#include "../shared/gnuplot.hpp"
#include "../shared/lock.hpp"
#include "../shared/program.hpp"
#include "../shared/progress.hpp"
#include "../shared/study.hpp"
#include "../shared/threads.hpp"
#include "table.hpp"

namespace {

using namespace study;

void check(const Options& o) {
    const std::string who = "subspace_distance";
    ig::require(who, "--units", o.units, 1);
    ig::require(who, "--layers", o.layers, 1);
    for (const double b : o.betas) ig::require(who, "--betas", b, 0, 1);
    for (const double t : o.taus) ig::require(who, "--taus", t, ig::Exclusive{0});
    ig::require(who, "--beta", o.beta, 0, 1);
    ig::require(who, "--rest", o.rest, 0, ig::Exclusive{1});
    ig::require(who, "--epochs", o.epochs, 1);
    ig::require(who, "--runs", o.runs, 1);
    ig::require(who, "--batch", o.batch, 1, ig::Index{1} << 31);
    ig::require(who, "--tokens", o.tokens, o.batch + 1);
}

/// Throws UsageError for an option without effect.
void require_effect(const CLI::App& app, const Options& o) {
    if (o.plot_only)
        program::with_only(app, "with --plot-only, which trains nothing", {"--plot-only", "--csv", "--svg"});
    if (o.update != "split")
        program::without(app, "with --update " + o.update + ", one rule with one --rate",
                         {"--head-rate", "--table-rate", "--rest"});
    if (o.sweep == "beta")
        program::without(app, "with --sweep beta, whose --betas are swept at --tau", {"--taus", "--beta"});
    if (o.sweep == "tau")
        program::without(app, "with --sweep tau, whose --taus are swept at --beta", {"--betas", "--tau"});
}

void print(const std::vector<Row>& rows, const std::string& sweep) {
    const auto means = averages(rows, sweep);
    if (means.empty()) return;
    std::printf("%s\n%6s  distance  angles: least  median  largest  table turned by  perplexity  runs\n",
                sweep == "beta" ? "sweep over β" : "sweep over τ", sweep.c_str());
    for (const Row& r : means)
        std::printf("%6g  %8.4f  %13.1f  %6.1f  %7.1f  %15.1f  %10.1f  %4td\n",
                    sweep == "beta" ? r.point.beta : r.point.tau, r.distance, r.smallest, r.median, r.largest,
                    r.turn, r.perplexity, r.point.run);
    for (const auto& [value, runs] : last_rows(rows, sweep)) {
        if (runs.size() < 2) continue;
        std::vector<double> d;
        for (const auto& [run, row] : runs) d.push_back(row.distance);
        std::sort(d.begin(), d.end());
        const double median = (d[(d.size() - 1) / 2] + d[d.size() / 2]) / 2;
        std::printf("%6g  distance of %zu runs: least %.4f, median %.4f, most %.4f\n", value, d.size(),
                    d.front(), median, d.back());
    }
}

/// The options that determine all rows, β, τ and the run given.
files::Study study_of(const Options& o, const std::string& text) {
    files::Study s;
    s.add_text("text", text).add("tokens", o.tokens).add("layers", o.layers).add("units", o.units);
    s.add("batch", o.batch).add("bptt", o.bptt).add("epochs", o.epochs).add("seed", o.seed);
    s.add("update", o.update).add("rate", o.rate).add("clip", o.clip);
    s.add("init", o.init).add("head-init", o.head_init).add("hold-target", o.hold_target ? "on" : "off");
    if (o.update == "split")
        s.add("head-rate", o.head_rate).add("table-rate", o.table_rate).add("rest", o.rest);
    return s;
}

/// Trains the points missing from the table and updates it after each epoch.
std::vector<Row> measure(const Options& o) {
    const std::string path = o.text.empty() ? files::corpus_file("ptb", "train", "--text") : o.text;
    files::require_regular({path}, "write it to a file");
    files::Outputs()
        .read("--text", path)
        .write("--csv", o.csv, files::table("table of subspace_distance", header))
        .lock("--csv", o.csv)
        .write("--svg", o.svg, plot::kind())
        .check();
    const files::Lock lock("--csv", o.csv);
    const auto study = study_of(o, path);
    std::vector<Row> rows;
    if (o.resume && files::has_content(o.csv)) rows = read_table(o.csv);
    files::require_same_study(o.csv, rows, [&](const Row& r, const files::Study& found) {
        const std::string what = study.differences(found);
        if (!what.empty()) return what;
        if (r.epoch > o.epochs) return ig::message("epoch ", r.epoch, " of --epochs ", o.epochs);
        // What a sweep holds fixed is the same in all of its rows.
        if (r.point.sweep == "beta" && o.sweep != "tau" && r.point.tau != o.tau)
            return ig::message("--tau is ", r.point.tau, ", not ", o.tau);
        if (r.point.sweep == "tau" && o.sweep != "beta" && r.point.beta != o.beta)
            return ig::message("--beta is ", r.point.beta, ", not ", o.beta);
        return what;
    });
    const auto vocabulary = ig::text::Vocabulary::from_file(path);
    const auto corpus = ig::text::Corpus::read(path, vocabulary);
    if (corpus.size() < o.tokens)
        throw ig::DataError(
            ig::message(path, ": found ", corpus.size(), " tokens, expected at least --tokens ", o.tokens));
    if (o.units > corpus.vocabulary_size())
        throw ig::DataError(ig::message(path, ": found ", corpus.vocabulary_size(),
                                        " types, expected at least --units ", o.units,
                                        ", the dimension of the spaces that are compared"));
    std::printf("%s: stretches of %td of %td tokens, %td types; %td x %td lstm; two random spaces: %.4f\n",
                path.c_str(), o.tokens, corpus.size(), corpus.vocabulary_size(), o.layers, o.units,
                std::sqrt(1 - double(o.units) / double(corpus.vocabulary_size())));
    for (const Point& point : points(o)) {
        std::vector<Row> known;  // rows of this training if complete, possibly from the other sweep
        for (const char* sweep : {"beta", "tau"}) {
            std::vector<Row> found;
            for (const Row& r : rows)
                if (r.point.same_training(point) && r.point.sweep == sweep) found.push_back(r);
            const bool complete = !found.empty() && found.back().epoch >= o.epochs;
            if (complete && (known.empty() || sweep == point.sweep)) known = std::move(found);
        }
        if (!known.empty() && known[0].point == point) continue;
        std::erase_if(rows, [&](const Row& r) { return r.point == point; });
        if (!known.empty()) {
            for (Row& r : known) r.point = point;
            rows.insert(rows.end(), known.begin(), known.end());
            write_table(o.csv, rows);
            continue;
        }
        const program::Stopwatch clock;
        train(o, point, corpus, [&](const Row& r) {
            rows.push_back(r);
            rows.back().study = study.field();
            write_table(o.csv, rows);
            std::printf(
                "β %g  τ %g  run %td  epoch %td: distance %.4f, angles %.1f° to %.1f°, "
                "table turned by %.1f°, perplexity %.1f, %.0f s\n",
                point.beta, point.tau, point.run + 1, r.epoch, r.distance, r.smallest, r.largest, r.turn,
                r.perplexity, clock.seconds());
            std::fflush(stdout);
        });
    }
    return rows;
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app("The distance between the word vectors and the softmax matrix, as beta and tau vary.");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
    const auto list = [&](const char* name, std::vector<double>& values, const char* help) {
        app.add_option(name, values, help)
            ->delimiter(',')
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    app.add_option("--text", o.text, "text; default: ptb/ptb.train.txt under ISOGLOSS_DATA");
    app.add_option("--sweep", o.sweep, "which of the two")->check(CLI::IsMember({"beta", "tau", "both"}));
    list("--betas", o.betas, "swept at --tau");
    list("--taus", o.taus, "swept at --beta");
    app.add_option("--tau", o.tau, "temperature of the sweep over beta, above 0");
    app.add_option("--beta", o.beta, "weight of the sweep over tau, 0 to 1");
    app.add_option("--tokens", o.tokens, "length of a stretch");
    app.add_option("--layers", o.layers, "LSTM layers");
    app.add_option("--units", o.units, "units of a layer, and width of the table");
    app.add_option("--batch", o.batch, "columns processed in parallel");
    app.add_option("--bptt", o.bptt, "steps of a segment");
    app.add_option("--epochs", o.epochs, "passes over the stretch");
    app.add_option("--runs", o.runs, "stretches and start values to average over");
    app.add_option("--update", o.update,
                   "split: Adam for the LSTM, gradient descent with momentum for the matrices; "
                   "sgd, adam: one rule for all")
        ->check(CLI::IsMember({"split", "sgd", "adam"}));
    app.add_option("--rate", o.rate,
                   "learning rate in the first epoch; it falls by the same step each epoch");
    app.add_option("--head-rate", o.head_rate, "of split: that of the softmax matrix");
    app.add_option("--table-rate", o.table_rate, "of split: that of the table");
    app.add_option("--rest", o.rest,
                   "of split: share of the epochs, at the end, in which the table is held fixed");
    app.add_flag("--hold-target", o.hold_target,
                 "soft targets are constants: no gradient through them into the table");
    app.add_option("--clip", o.clip,
                   "largest norm of the gradient, under split that of the LSTM alone; 0: no limit");
    app.add_option("--init", o.init, "bound of the start values");
    app.add_option("--head-init", o.head_init, "bound of those of the softmax matrix");
    app.add_option("--seed", o.seed, "of the first run");
    app.add_option("--threads", o.threads, "threads");
    app.add_option("--csv", o.csv, "the table");
    app.add_option("--svg", o.svg, "the figure; empty: none");
    app.add_flag("--resume", o.resume, "keep what the table has of this study and train the rest");
    app.add_flag("--plot-only", o.plot_only, "draw the table as it is");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    check(o);
    require_effect(app, o);
    if (o.sweep == "beta") o.taus.clear();
    if (o.sweep == "tau") o.betas.clear();
    program::use_threads("subspace_distance", o.threads);
    if (o.plot_only) files::Outputs().read("--csv", o.csv).write("--svg", o.svg, plot::kind()).check();
    const auto rows = o.plot_only ? read_table(o.csv) : measure(o);
    if (rows.empty())
        throw ig::DataError(
            ig::message(o.csv, ": found a table without rows, expected at least one training"));
    print(rows, "beta");
    print(rows, "tau");
    if (!o.svg.empty()) draw(o.svg, rows);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
