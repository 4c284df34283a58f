/// @file embed.cpp  Vectors of the tokens of a text, and of words.
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>

#include "common.hpp"

namespace lt {

int embed(const EmbedCommand& o) {
    ig::threads(o.threads);
    const ig::BlasOnOneThread blas;
    files::Outputs()
        .read("--model", o.model)
        .read("--text", o.text)
        .write("--out", o.out, embeddings_kind())
        .write_unmarked("--types", o.types, o.overwrite)
        .check();
    const auto it = lds::load_lds<float>(o.model);
    if (o.types.empty() && o.text.empty()) throw ig::DataError("embed: give --types, or --text and --out");
    if (!o.types.empty()) {
        const auto v = lds::type_embedding(it.system, it.xx);
        ig::io::write_word2vec_text(o.types, {it.vocabulary.words(), lds::cols(v), {v.begin(), v.end()}});
        say("%td word vectors of %td numbers in %s\n", lds::rows(v), lds::cols(v), o.types.c_str());
    }
    if (o.text.empty()) return 0;
    if (o.out.empty())
        throw ig::DataError("embed: give --out, the file that the vectors of the tokens go to");
    const auto corpus = ig::text::Corpus::read(o.text, it.vocabulary);
    const bool filter = o.states == "filter";
    Stopwatch clock;
    const lds::TokenEmbedding<float> tokens(it.system, lds::steady_state(it.system),
                                            filter ? it.xx_filtered : it.xx,
                                            filter ? lds::TokenStates::filter : lds::TokenStates::smoother);
    const auto z = tokens(corpus.tokens());
    const double seconds = clock.lap();
    std::vector<std::int32_t> ids(corpus.tokens().begin(), corpus.tokens().end());
    ig::io::write_safetensors(
        o.out,
        std::vector<ig::io::TensorView>{
            ig::io::tensor_view<float>("embeddings", {lds::rows(z), lds::cols(z)}, {z.data(), z.size()}),
            ig::io::tensor_view<std::int32_t>("tokens", {std::ssize(ids)}, ids)});
    say("%td tokens in %.2f s, %.2f µs each\n", corpus.size(), seconds,
        1e6 * seconds / static_cast<double>(corpus.size()));
    const Likelihood found = likelihood(tokens.filter(), it.system.whitening, corpus.tokens());
    say("of this text: log-likelihood %.5f per token, %+.5f above none\n", found.value, found.above_static);
    return 0;
}

}  // namespace lt
