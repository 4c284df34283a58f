/// @file main.cpp  The next character from the M before it: softmax over concatenated embeddings, trained by
/// its closed-form gradient; perplexity compared with n-grams, and a picture of the table.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <isogloss/closed_form/concatenated_softmax.hpp>
#include <isogloss/file/output_file.hpp>
#include <isogloss/geometry/principal_components.hpp>
#include <isogloss/isogloss.hpp>
#include <isogloss/text.hpp>

#include "../shared/csv_log.hpp"
#include "../shared/gnuplot.hpp"
#include "../shared/program.hpp"
#include "../shared/progress.hpp"
#include "../shared/threads.hpp"
#include "ngrams.hpp"

namespace {

namespace ig = isogloss;
using Model = ig::ConcatenatedSoftmax<float>;

/// The command line.
struct Options {
    std::string text = ISOGLOSS_EXAMPLES_DATA "/tinyshakespeare.txt";
    std::string svg = "character_embeddings.svg", csv = "character_embeddings.csv";
    ig::Index before = 4, width = 8, batch = 256, epochs = 3;
    std::uint64_t seed = 1;
    double rate = 0.01;
    int threads = 1;
};

/// Examples [at, at + count) of a text: the M characters before each, line ends before the first.
struct Examples {
    std::span<const ig::Token> text;
    ig::Index M;
    ig::Token start;
    std::vector<ig::Token> X, y;

    void gather(const std::vector<ig::Index>& at) {
        X.clear();
        y.clear();
        for (const ig::Index i : at) {
            for (ig::Index m = M; m >= 1; --m) X.push_back(i - m < 0 ? start : text[std::size_t(i - m)]);
            y.push_back(text[std::size_t(i)]);
        }
    }
};

double perplexity(Model& model, Examples& examples, ig::Index first) {
    ig::Perplexity p;
    std::vector<ig::Index> at;
    for (ig::Index i = first; i < std::ssize(examples.text); ++i) {
        at.push_back(i);
        if (std::ssize(at) < model.options().batch && i + 1 < std::ssize(examples.text)) continue;
        examples.gather(at);
        p.add(model.value(examples.X, examples.y), std::ssize(at));
        at.clear();
    }
    return p.value();
}

/// The label of a character in the picture, as it is written in the double quotes of gnuplot's data.
std::string label(const std::string& character) {
    if (character == "\n") return "↵";
    if (character == "\"") return "''";
    if (character == ",") return "‚";
    if (character == "\\") return "\\\\";
    if (character == " ") return "␣";
    const std::string shown = ig::shown(character);  // a picture holds no control characters
    return shown == character ? character : "\\" + shown;
}

/// Class of a character, for its colour: vowels, other letters, capitals, the rest.
int kind(const std::string& character) {
    const char c = character.size() == 1 ? character[0] : ' ';
    if (std::string("aeiou").find(c) != std::string::npos) return 0;
    return c >= 'a' && c <= 'z' ? 1 : c >= 'A' && c <= 'Z' ? 2 : 3;
}

void draw(const Options& o, const ig::text::Vocabulary& vocabulary, const ig::PrincipalComponents& p) {
    plot::Figure figure(o.svg, 720, 540, false);
    figure << "$points << end_of_data\n";
    for (ig::Index v = 0; v < p.rows; ++v) {
        const std::string& word = vocabulary.word(static_cast<ig::Token>(v));
        figure << p.coordinates[std::size_t(2 * v)] << ',' << p.coordinates[std::size_t(2 * v + 1)] << ",\""
               << label(word) << "\"," << kind(word) << '\n';
    }
    figure << "end_of_data\nset key outside top\nset grid lc rgb '#dddddd'\n"
           << "set xlabel sprintf('first component, %.0f %% of the variance', " << 100 * p.variance[0]
           << ")\n"
           << "set ylabel sprintf('second component, %.0f %% of the variance', " << 100 * p.variance[1]
           << ")\nplot ";
    const char* names[] = {"vowels", "consonants", "capitals", "others"};
    const char* colours[] = {"#c0392b", "#1f5fa8", "#2e8b57", "#777777"};
    for (int k = 0; k < 4; ++k)
        figure << (k ? ", " : "") << "$points using 1:($4 == " << k << " ? $2 : NaN):3 with labels tc rgb '"
               << colours[k] << "' notitle, NaN with points pt 7 lc rgb '" << colours[k] << "' title '"
               << names[k] << "'";
    figure << '\n';
    figure.draw();
}

constexpr const char* csv_header = "character,count,x,y";

/// Throws for what would fail, or train nothing, only after the training.
void check(const Options& o, ig::Index types, ig::Index training) {
    const std::string who = "character_embeddings";
    ig::require(who, "--batch", o.batch, 1);
    ig::require(who, "--before", o.before, 1, 1000);
    if (training < o.batch)
        throw ig::DataError(ig::message(o.text, ": found ", training,
                                        " characters for training, nine tenths of the text, expected at "
                                        "least --batch ",
                                        o.batch));
    if (o.width > types)
        throw ig::DataError(ig::message(o.text, ": found ", types,
                                        " different characters, expected at least --width ", o.width,
                                        ", for the principal components of the table"));
    if (!characters::Ngrams::countable(o.before + 1, types))
        throw ig::UsageError(ig::message(who, ": found --before = ", o.before, ", but (", o.before + 1,
                                         ")-grams of ", types,
                                         " characters are too long to be counted; lower it"));
}

void run(const Options& o) {
    files::Outputs()
        .read("--text", o.text)
        .write("--csv", o.csv, files::table("table of character_embeddings", csv_header))
        .write("--svg", o.svg, plot::kind())
        .check();
    files::require_regular({o.text}, "write it to a file");
    const program::Stopwatch clock;
    const auto vocabulary =
        ig::text::Vocabulary::from_file(o.text, {.level = ig::text::Level::character, .add_unk = false});
    const auto corpus = ig::text::Corpus::read(o.text, vocabulary);
    const ig::Index V = vocabulary.size(), cut = corpus.size() * 9 / 10;
    std::printf("%td characters, %td of them different; the last tenth is for validation\n", corpus.size(),
                V);
    check(o, V, cut);

    Model model({.vocabulary = V,
                 .width = o.width,
                 .words = o.before,
                 .classes = V,
                 .batch = o.batch,
                 .init = ig::normal(0.3),
                 .seed = o.seed});
    ig::Adam adam(model.parameters(), {.rate = o.rate, .divisor = ig::Divisor::tokens});
    std::printf("table %td x %td, classes from %td characters: %td parameters\n", V, o.width, o.before,
                model.parameters().elements());

    Examples training{corpus.tokens().first(std::size_t(cut)), o.before, vocabulary.eos(), {}, {}};
    Examples all{corpus.tokens(), o.before, vocabulary.eos(), {}, {}};
    const ig::Index steps = cut / o.batch;
    std::vector<ig::Index> at(static_cast<std::size_t>(o.batch));
    double reached = 0;  // perplexity after the last epoch
    for (ig::Index epoch = 0; epoch < o.epochs; ++epoch) {
        for (ig::Index step = 0; step < steps; ++step) {
            const ig::Random random(o.seed, ig::stream_of("examples"),
                                    static_cast<std::uint64_t>(epoch * steps + step));
            for (ig::Index i = 0; i < o.batch; ++i) at[std::size_t(i)] = random.below(i, cut);
            training.gather(at);
            adam.rate(o.rate * (1 - double(epoch * steps + step) / double(o.epochs * steps)));
            model.value_and_gradient(training.X, training.y);
            adam.step();
        }
        reached = perplexity(model, all, cut);
        if (!std::isfinite(reached))
            throw ig::NumericError("character_embeddings: the training diverged in epoch ", epoch + 1,
                                   "; lower --rate");
        std::printf("epoch %td: validation perplexity %.3f, %.1f s\n", epoch + 1, reached, clock.seconds());
        std::fflush(stdout);
    }

    std::printf("\nvalidation perplexity per character\n");
    const characters::Ngrams ngrams(training.text, o.before + 1, V);
    for (ig::Index order = 1; order <= o.before + 1; ++order)
        std::printf("  %td-gram, Witten-Bell        %7.3f\n", order,
                    ngrams.perplexity(corpus.tokens(), cut, order));
    std::printf("  embeddings of %td characters  %7.3f\n", o.before, reached);

    const auto E = model.E().values();
    const auto p = ig::principal_components<float>(E, 2);
    const auto write_table = [&](ig::file::OutputFile& out) {
        out.write(ig::message(csv_header, '\n'));
        for (ig::Index v = 0; v < V; ++v)
            out.write(ig::message(files::csv_text(ig::shown(vocabulary.word(static_cast<ig::Token>(v)))), ',',
                                  vocabulary.count(static_cast<ig::Token>(v)), ',',
                                  p.coordinates[std::size_t(2 * v)], ',',
                                  p.coordinates[std::size_t(2 * v + 1)], '\n'));
    };
    if (!o.csv.empty()) ig::file::write_atomically(o.csv, write_table);
    if (!o.svg.empty()) draw(o, vocabulary, p);
}

int work(int argc, char** argv) {
    Options o;
    CLI::App app(
        "The next character from those before it, by a closed-form gradient; a picture of the table.");
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("--text", o.text, "text in UTF-8");
    app.add_option("--before", o.before, "characters before, M");
    app.add_option("--width", o.width, "numbers per character, H, at least 2")->check(CLI::Range(2, 10000));
    app.add_option("--batch", o.batch, "examples per step");
    app.add_option("--epochs", o.epochs, "steps: this many times examples / batch")
        ->check(CLI::Range(1, 100000));
    app.add_option("--rate", o.rate, "learning rate of Adam at first; it falls to 0");
    app.add_option("--seed", o.seed, "of the start values and examples");
    app.add_option("--threads", o.threads, "threads");
    app.add_option("--svg", o.svg, "the picture; empty: none");
    app.add_option("--csv", o.csv, "its coordinates; empty: none");
    if (const auto end = program::parse(app, argc, argv)) return *end;
    program::use_threads("character_embeddings", o.threads);
    run(o);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return program::run(argc, argv, work); }
