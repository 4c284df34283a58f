/// @file embed.cpp  Vectors of the tokens of a text, and of words.
#include <isogloss/io/word_vectors.hpp>
#include <isogloss/lds.hpp>
#include <isogloss/lds/files.hpp>

#include "../shared/threads.hpp"
#include "common.hpp"
#include "sentence_vectors.hpp"

namespace lt {

int embed(const EmbedCommand& o) {
    program::use_threads("embed", o.threads);
    const ig::BlasOnOneThread blas;
    files::Outputs()
        .read("--model", o.model)
        .read("--text", o.text)
        .write("--out", o.out, embeddings_kind())
        .write_unmarked("--types", o.types, o.overwrite)
        .check();
    if (o.types.empty() && o.text.empty()) throw ig::DataError("embed: give --types, or --text and --out");
    if (!o.text.empty() && o.out.empty())
        throw ig::DataError("embed: give --out, the file for the vectors of the tokens");
    require_texts(o.text);
    const auto it = lds::load_lds<float>(o.model);
    const Sentences text(o.text, it.vocabulary);  // before a file is written: a text may be refused
    if (!o.types.empty()) {
        const auto v = lds::type_embedding(it.system, it.xx);
        ig::io::write_word_vectors(o.types, {it.vocabulary.words(), lds::cols(v), {v.begin(), v.end()}},
                                   ig::io::WordVectorFormat::word2vec_text);
        say("%td word vectors of %td numbers in %s\n", lds::rows(v), lds::cols(v), o.types.c_str());
    }
    if (o.text.empty()) return 0;
    Stopwatch clock;
    const auto embedding = token_embedding(it, o.states);
    const auto z = sentence_vectors(embedding, text, before_sentence(it));
    const double seconds = clock.lap();
    const std::vector<std::int32_t> ids(text.tokens().begin(), text.tokens().end());
    ig::io::write_safetensors(
        o.out,
        std::vector<ig::io::TensorView>{
            ig::io::tensor_view<float>("embeddings", {lds::rows(z), lds::cols(z)}, {z.data(), z.size()}),
            ig::io::tensor_view<std::int32_t>("tokens", {std::ssize(ids)}, ids)});
    say("%td tokens in %.2f s, %.2f µs each\n", std::ssize(ids), seconds,
        1e6 * seconds / static_cast<double>(ids.size()));
    const auto& mu = it.system.whitening.mu;
    for (const ig::Token token : text.as_spelled())
        if (!(mu[token] > 0)) {
            say("this text has no likelihood: %s has frequency 0 in the system\n",
                ig::in_quotes(it.vocabulary.word(token)).c_str());
            return 0;
        }
    const Likelihood found = likelihood(embedding.filter(), it.system.whitening, text.as_spelled(),
                                        boundary(of_sentences(it), it.vocabulary));
    say("of this text: log-likelihood %.5f per token, %+.5f above none\n", found.value, found.above_static);
    return 0;
}

}  // namespace lt
