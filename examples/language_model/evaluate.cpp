/// @file evaluate.cpp  Perplexity of a text.
#include <iostream>

#include "commands.hpp"
#include "measure.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "texts.hpp"

namespace lm {

int evaluate(const EvaluateOptions& o) {
    ig::threads(o.threads);
    const auto it = load_model(o.model, o.columns);
    const auto corpus = ig::text::Corpus::read(o.text, it.vocabulary);
    std::cout << "text        " << describe(corpus, o.text) << "\nunigram     perplexity "
              << fixed(unigram_perplexity(it.vocabulary, corpus), 2) << ", for comparison" << std::endl;
    Progress progress("evaluation");
    const auto p = measure(*it.g, it.model, corpus, it.vocabulary, o.columns, it.g->capacity().time,
                           [&](ig::Index done, ig::Index all) {
                               progress.update(done, all, [] { return std::string(); });
                               return true;
                           });
    progress.clear();
    std::cout << describe(*p, corpus, it.vocabulary, o.columns) << std::endl;
    return 0;
}

}  // namespace lm
