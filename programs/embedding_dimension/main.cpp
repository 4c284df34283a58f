/// @file main.cpp  The minimal-entropy rule compared with measurements: validation perplexity over the width
/// of the table, for a tied LSTM language model and for skip-gram with a full softmax.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/counts/files.hpp>
#include <isogloss/counts/pair_entropy.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/geometry/embedding_dimension.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>
#include <map>

#include "../shared/csv_log.hpp"
#include "../shared/data_folder.hpp"
#include "../shared/gnuplot.hpp"
#include "../shared/lock.hpp"
#include "../shared/program.hpp"
#include "../shared/progress.hpp"
#include "../shared/study.hpp"
#include "../shared/threads.hpp"

namespace {

namespace ig = isogloss;

/// The command line.
struct Options {
    std::string train, valid, counts, csv = "embedding_dimension.csv", svg = "embedding_dimension.svg";
    std::vector<ig::Index> widths = {4, 8, 16, 32, 64, 128};
    std::vector<std::string> models = {"tied", "skip-gram"};
    ig::Index tokens = 200000, epochs = 4, batch = 20, bptt = 35, window = 5, max_vocabulary = 0;
    double vocabulary = 0;  // > 0: only print the rule for this many words
    double keep = 1, rate = 1, skip_gram_rate = 0.005;
    std::uint64_t seed = 1;
    int threads = 1;
    bool resume = false, plot_only = false;
};

/// A row of the table: one model of one width after one epoch.
struct Row {
    std::string model;
    ig::Index words = 0, width = 0, epoch = 0;
    double train = 0, valid = 0;  ///< perplexities
    std::string study = {};       ///< the field of a files::Study
};

using Report = std::function<void(const Row&)>;

/// One LSTM layer as wide as the table, which is also the softmax matrix.
void train_tied(const Options& o, ig::Index width, const ig::text::Corpus& train,
                const ig::text::Corpus& valid, ig::Token eos, const Report& report) {
    const ig::Index V = train.vocabulary_size();
    ig::Graph<float> g({.time = o.bptt, .batch = o.batch, .seed = o.seed});
    const auto x = g.tokens("x", V), y = g.tokens("y", V);
    const auto E = g.weight("E", V, width, ig::uniform(0.1));
    const auto e = g.add<ig::Embedding>("embed", {.keep = o.keep}, x, E);
    const auto h = g.add<ig::Lstm>("lstm", {.units = width, .keep = o.keep}, e);
    const auto l =
        g.add<ig::CrossEntropy>("loss", {}, g.add<ig::TiedSoftmax>("softmax", {.bias = true}, h, E), y);
    ig::Sgd sgd(g.parameters(), {.rate = o.rate, .clip = 5});
    for (ig::Index epoch = 1; epoch <= o.epochs; ++epoch) {
        sgd.rate(o.rate * std::pow(0.5, double(std::max<ig::Index>(0, epoch - (o.epochs + 1) / 2))));
        ig::Perplexity in_training;
        for (const auto& batch : train.batches(g.capacity())) {
            if (batch.first) g.reset();
            const double nats = g.forward(l, {x, batch.input}, {y, batch.target});
            in_training.add(nats,
                            g.result(l).predicted());  // after the pass: the order of arguments is not given
            g.backward(l);
            sgd.step();
        }
        const auto in_validation = ig::evaluate(
            g, l, x, y, valid.batches(g.capacity(), {.tail = ig::text::Tail::pad, .predict_first = eos}));
        report({"tied", V, width, epoch, in_training.value(), in_validation.value()});
    }
}

/// Pairs of words at most `window` apart, one for each token: its neighbour is drawn at random.
struct Pairs {
    std::vector<ig::Token> X, y;
    Pairs(const ig::text::Corpus& text, ig::Index window, std::uint64_t seed, std::uint64_t epoch) {
        const ig::Random random(seed, ig::stream_of("pairs"), epoch),
            order(seed, ig::stream_of("order"), epoch);
        const auto tokens = text.tokens();
        for (ig::Index i = 0; i < text.size(); ++i) {
            ig::Index offset = random.below(i, 2 * window) - window;
            if (offset >= 0) ++offset;
            if (i + offset < 0 || i + offset >= text.size()) continue;
            X.push_back(tokens[std::size_t(i)]);
            y.push_back(tokens[std::size_t(i + offset)]);
        }
        if (X.empty())
            throw ig::DataError(text.source(), ": found no pair of words in ", text.size(),
                                " tokens with --window ", window,
                                ", expected at least one; use a longer text or a smaller --window");
        for (ig::Index i = std::ssize(X) - 1; i > 0; --i) {  // in random order
            const auto j = static_cast<std::size_t>(order.below(i, i + 1));
            std::swap(X[std::size_t(i)], X[j]);
            std::swap(y[std::size_t(i)], y[j]);
        }
    }
};

/// p(j | i) = softmax(E_i W)_j: skip-gram without sampling, by its closed-form gradient.
void train_skip_gram(const Options& o, ig::Index width, const ig::text::Corpus& train,
                     const ig::text::Corpus& valid, const Report& report) {
    const ig::Index V = train.vocabulary_size(), N = 512;
    ig::ConcatenatedSoftmax<float> model({.vocabulary = V,
                                          .width = width,
                                          .words = 1,
                                          .classes = V,
                                          .batch = N,
                                          .init = ig::uniform(0.1),
                                          .seed = o.seed});
    ig::Adam adam(model.parameters(), {.rate = o.skip_gram_rate, .divisor = ig::Divisor::tokens});
    const auto pass = [&](const Pairs& pairs, bool training) {
        ig::Perplexity p;
        for (std::size_t i = 0; i < pairs.X.size(); i += std::size_t(N)) {
            const std::size_t some = std::min(pairs.X.size() - i, std::size_t(N));
            const auto X = std::span(pairs.X).subspan(i, some), y = std::span(pairs.y).subspan(i, some);
            p.add(training ? model.value_and_gradient(X, y) : model.value(X, y), ig::Index(some));
            if (training) adam.step();
        }
        return p.value();
    };
    const Pairs held_out(valid, o.window, o.seed, 0);
    for (ig::Index epoch = 1; epoch <= o.epochs; ++epoch) {
        adam.rate(o.skip_gram_rate * std::pow(0.5, double(epoch - 1)));
        const double in_training = pass(Pairs(train, o.window, o.seed, std::uint64_t(epoch)), true);
        report({"skip-gram", V, width, epoch, in_training, pass(held_out, false)});
    }
}

constexpr const char* header = "model,words,width,epoch,train_perplexity,valid_perplexity,study";

void write_table(const std::string& path, const std::vector<Row>& rows) {
    ig::file::write_atomically(path, [&](ig::file::OutputFile& out) {
        out.write(ig::message(header, '\n'));
        for (const Row& r : rows)
            out.write(ig::message(r.model, ',', r.words, ',', r.width, ',', r.epoch, ',', r.train, ',',
                                  r.valid, ',', r.study, '\n'));
    });
}

/// Reads a table that write_table wrote. Throws DataError with the line for anything else.
std::vector<Row> read_table(const std::string& path) {
    ig::file::LineReader lines(path);
    std::vector<Row> rows;
    for (std::string_view line; lines.next(line);) {
        if (lines.line() == 1 && line == header) continue;
        const auto fields = files::csv_fields(line);
        bool valid =
            lines.line() > 1 && fields.size() == 7 && (fields[0] == "tied" || fields[0] == "skip-gram");
        const auto number = [&](std::size_t field, bool whole) {
            const double x = (valid ? files::csv_number(fields[field]) : std::nullopt).value_or(0);
            valid = valid && x > 0 && (!whole || (x <= 1e15 && x == std::floor(x)));
            return x;
        };
        const auto index = [&](std::size_t field) {
            const double x = number(field, true);
            return valid ? static_cast<ig::Index>(x) : 0;
        };
        Row r;
        r.words = index(1), r.width = index(2), r.epoch = index(3);
        r.train = number(4, false), r.valid = number(5, false);
        if (!valid)
            throw ig::DataError(ig::message(path, ":", lines.line(), ": found ", ig::in_quotes(line),
                                            ", expected a row of a table of embedding_dimension"));
        r.model = fields[0];
        r.study = fields[6];
        rows.push_back(std::move(r));
    }
    return rows;
}

/// The options that determine the rows of a model.
files::Study study_of(const Options& o, const std::string& model, const files::Study& texts) {
    files::Study s = texts;
    s.add("tokens", o.tokens)
        .add("max-vocabulary", o.max_vocabulary)
        .add("epochs", o.epochs)
        .add("seed", o.seed);
    const bool asked = std::ranges::count(o.models, model) > 0;  // of other models this call knows no more
    if (asked && model == "tied")
        s.add("keep", o.keep).add("rate", o.rate).add("batch", o.batch).add("bptt", o.bptt);
    if (asked && model == "skip-gram") s.add("skip-gram-rate", o.skip_gram_rate).add("window", o.window);
    return s;
}

/// What a row to be kept has differently from the study of this call; empty if nothing.
std::string differences(const Options& o, const Row& r, const files::Study& found, ig::Index words,
                        const files::Study& texts) {
    std::string what = study_of(o, r.model, texts).differences(found);
    if (what.empty() && r.words != words)
        what = ig::message("the vocabulary has ", r.words, " words, not ", words);
    if (what.empty() && r.epoch > o.epochs) what = ig::message("epoch ", r.epoch, " of --epochs ", o.epochs);
    return what.empty() ? what : ig::message("of ", r.model, ", width ", r.width, ", ", what);
}

/// The best validation perplexity of each width, in order of width.
std::vector<Row> best(const std::vector<Row>& rows, const std::string& model) {
    std::map<ig::Index, Row> by_width;
    for (const Row& r : rows) {
        if (r.model != model) continue;
        const auto [at, is_new] = by_width.emplace(r.width, r);
        if (!is_new && r.valid < at->second.valid) at->second = r;
    }
    std::vector<Row> found;
    for (const auto& [width, r] : by_width) found.push_back(r);
    return found;
}

/// Two panels: perplexity over the width, and the rule's entropy H(N, n), which is 0 at the rule's n.
/// Models without rows have no panel.
void draw(const std::string& path, const std::vector<Row>& rows, std::vector<std::string> models) {
    std::erase_if(models, [&](const std::string& model) { return best(rows, model).empty(); });
    plot::Figure f(path, 900, 330);
    const auto words = double(rows.front().words);
    const auto rule = ig::embedding_dimension(words);
    ig::Index last = 2 * rule.exact;
    f << "set multiplot layout 1," << models.size() + 1 << "\nset logscale x 2\nset grid\nunset key\n"
      << "set xlabel 'width n'\nset style line 1 lw 2 pt 7 ps 0.6 lc rgb '#1f5fa8'\n";
    for (std::size_t m = 0; m < models.size(); ++m) {
        f << "$m" << m << " << end_of_data\n";
        for (const Row& r : best(rows, models[m])) {
            f << r.width << ',' << r.valid << '\n';
            last = std::max(last, r.width);
        }
        f << "end_of_data\nset title '" << models[m] << "'\nset ylabel 'validation perplexity'\n"
          << "set arrow 1 from first " << rule.exact << ", graph 0 to first " << rule.exact
          << ", graph 1 nohead dt 2 lc rgb '#c0392b'\nplot $m" << m << " using 1:2 with linespoints ls 1\n";
    }
    f << "$h << end_of_data\n";
    for (double n = 4; n <= double(last); n *= 1.1)
        f << ig::Index(n) << ',' << ig::skip_gram_entropy(words, ig::Index(n)) << '\n';
    f << "end_of_data\nset title 'H(N, n), N = " << rows.front().words << "'\nset ylabel 'nats'\n"
      << "plot $h using 1:2 with lines lw 2 lc rgb '#1f5fa8', 0 lc rgb '#777777'\nunset multiplot\n";
    f.draw();
}

std::vector<Row> measure(const Options& o) {
    const auto ptb = [](const char* part) { return files::corpus_file("ptb", part, "--train and --valid"); };
    const std::string train_path = o.train.empty() ? ptb("train") : o.train,
                      valid_path = o.valid.empty() ? ptb("valid") : o.valid;
    files::require_regular({train_path, valid_path}, "write it to a file");
    files::Outputs()
        .read("--train", train_path)
        .read("--valid", valid_path)
        .write("--csv", o.csv, files::table("table of embedding_dimension", header))
        .lock("--csv", o.csv)
        .write("--svg", o.svg, plot::kind())
        .check();
    const files::Lock lock("--csv", o.csv);
    std::vector<Row> rows;
    if (o.resume && files::has_content(o.csv)) rows = read_table(o.csv);
    const auto vocabulary = ig::text::Vocabulary::from_file(train_path, {.max_size = o.max_vocabulary});
    const auto text = ig::text::Corpus::read(train_path, vocabulary);
    const auto whole = text.tokens();
    const auto kept =
        o.tokens > 0 ? whole.first(std::min<std::size_t>(whole.size(), std::size_t(o.tokens))) : whole;
    const auto train =
        ig::text::Corpus::from_tokens({kept.begin(), kept.end()}, vocabulary.size(), train_path);
    const auto valid = ig::text::Corpus::read(valid_path, vocabulary);
    const auto texts = files::Study().add_text("train", train_path).add_text("valid", valid_path);
    files::require_same_study(o.csv, rows, [&](const Row& r, const files::Study& found) {
        return differences(o, r, found, vocabulary.size(), texts);
    });
    const auto rule = ig::embedding_dimension(double(vocabulary.size()));
    std::printf("%td tokens, %td words; the rule: n = %td (%.1f)\n", train.size(), vocabulary.size(),
                rule.exact, rule.rule);
    for (const auto& model : o.models)
        for (const ig::Index width : o.widths) {
            ig::Index done = 0;
            for (const Row& r : rows)
                if (r.model == model && r.width == width) done = std::max(done, r.epoch);
            if (done >= o.epochs) continue;
            std::erase_if(rows, [&](const Row& r) { return r.model == model && r.width == width; });
            const program::Stopwatch clock;
            const Report report = [&, study = study_of(o, model, texts).field()](const Row& r) {
                if (!std::isfinite(r.train) || !std::isfinite(r.valid))
                    throw ig::NumericError("embedding_dimension: ", r.model, " of width ", r.width,
                                           " diverged in epoch ", r.epoch, "; lower ",
                                           r.model == "tied" ? "--rate" : "--skip-gram-rate");
                rows.push_back(r);
                rows.back().study = study;
                write_table(o.csv, rows);
                std::printf("%-9s width %3td  epoch %td: train %.1f  valid %.1f  %.0f s\n", r.model.c_str(),
                            r.width, r.epoch, r.train, r.valid, clock.seconds());
                std::fflush(stdout);
            };
            if (model == "tied") train_tied(o, width, train, valid, vocabulary.eos(), report);
            else train_skip_gram(o, width, train, valid, report);
        }
    return rows;
}

/// The dimension for a vocabulary of N words, by the rule, its exact form and its limit.
int print_rule(double words) {
    const auto found = ig::embedding_dimension(words);
    std::printf("N = %.15g words: exact n = %td; rule %.2f, asymptotic %.2f\n", words, found.exact,
                found.rule, found.asymptotic);
    for (ig::Index n = std::max<ig::Index>(1, found.exact - 1); n <= found.exact; ++n)
        std::printf("H(N, %td) = %+.4f nats\n", n, ig::skip_gram_entropy(words, n));
    return 0;
}

/// As CSV, the entropy of the pairs of a corpus for every window that its counts hold, and the dimensions that it asks for.
int print_rule(const std::string& path) {
    const auto file = ig::counts::load_counts(path);
    const auto words = static_cast<double>(file.vocabulary.size());
    std::printf("window,words,entropy,exact,rule,asymptotic\n");
    for (ig::Index window = 1; window <= file.counts.lags(); ++window) {
        const double entropy = ig::counts::pair_entropy(file.counts, window);
        const auto found = ig::embedding_dimension(words, entropy);
        std::printf("%td,%.15g,%.4f,%td,%.2f,%.2f\n", window, words, entropy, found.exact, found.rule,
                    found.asymptotic);
    }
    return 0;
}

/// Throws UsageError for an option without effect.
void require_effect(const CLI::App& app, const Options& o) {
    if (o.plot_only)
        program::with_only(app, "with --plot-only, which trains nothing",
                           {"--plot-only", "--models", "--csv", "--svg"});
    if (!std::ranges::count(o.models, "tied"))
        program::without(app, "without the model tied", {"--keep", "--rate", "--batch", "--bptt"});
    if (!std::ranges::count(o.models, "skip-gram"))
        program::without(app, "without the model skip-gram", {"--skip-gram-rate", "--window"});
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app("The minimal-entropy rule for the width of a table, against measured perplexities.");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->always_capture_default();
    auto* rule = app.add_option("N", o.vocabulary,
                                "print the dimension for a vocabulary of this many words, and train nothing");
    app.add_option(
        "--counts", o.counts,
        "file of `lds_text count`: print the entropy of its pairs and the dimension it asks for, as CSV");
    app.add_option("--train", o.train, "training text; default: ptb/ptb.train.txt under ISOGLOSS_DATA");
    app.add_option("--valid", o.valid, "validation text; default: ptb/ptb.valid.txt");
    app.add_option("--tokens", o.tokens, "only this many of the training text; 0: all");
    app.add_option("--max-vocabulary", o.max_vocabulary, "most words; 0: all");
    app.add_option("--widths", o.widths, "widths of the table")
        ->delimiter(',')
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(CLI::Range(1, 100000));
    app.add_option("--models", o.models, "which")
        ->delimiter(',')
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->check(CLI::IsMember({"tied", "skip-gram"}));
    app.add_option("--epochs", o.epochs, "passes over the text")->check(CLI::Range(1, 100000));
    app.add_option("--keep", o.keep, "of the tied model: share of units kept by dropout");
    app.add_option("--rate", o.rate, "of the tied model: rate of SGD, halved each epoch in the second half");
    app.add_option("--skip-gram-rate", o.skip_gram_rate, "of skip-gram: rate of Adam, halved each epoch");
    app.add_option("--window", o.window, "of skip-gram: farthest neighbour")->check(CLI::Range(1, 1000));
    app.add_option("--batch", o.batch, "columns of the tied model");
    app.add_option("--bptt", o.bptt, "steps of the tied model");
    app.add_option("--seed", o.seed, "of start values and pairs");
    app.add_option("--threads", o.threads, "threads");
    app.add_option("--csv", o.csv, "the table");
    app.add_option("--svg", o.svg, "the figure; empty: none");
    app.add_flag("--resume", o.resume, "keep what the table has of this study and train the rest");
    app.add_flag("--plot-only", o.plot_only, "draw the table as it is");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    if (*rule) {
        program::with_only(app, "with N, which prints the rule and trains nothing", {rule->get_name()});
        return print_rule(o.vocabulary);
    }
    if (!o.counts.empty()) {
        program::with_only(app, "with --counts, of which the rule is printed", {"--counts"});
        return print_rule(o.counts);
    }
    require_effect(app, o);
    ig::require("embedding_dimension", "--tokens", o.tokens, 0);
    program::use_threads("embedding_dimension", o.threads);
    if (o.plot_only) files::Outputs().read("--csv", o.csv).write("--svg", o.svg, plot::kind()).check();
    const auto rows = o.plot_only ? read_table(o.csv) : measure(o);
    if (std::ranges::none_of(rows, [&](const Row& r) { return std::ranges::count(o.models, r.model) > 0; }))
        throw ig::DataError(ig::message(o.csv, ": found ", rows.size(),
                                        " rows, none of --models, expected at least one of them"));
    for (const auto& model : o.models)
        for (const Row& r : best(rows, model))
            std::printf("%-9s width %4td: best validation perplexity %.2f (epoch %td, train %.2f)\n",
                        model.c_str(), r.width, r.valid, r.epoch, r.train);
    if (!o.svg.empty()) draw(o.svg, rows, o.models);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
