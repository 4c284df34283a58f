/// @file sample.cpp  A text, drawn token by token from the model's own predictions.
#include <iostream>

#include "sampling.hpp"

namespace lm {

int sample(const SampleOptions& o) {
    auto it = load_model(o.model, 1);
    std::cout << sample_text(it, o);
    return 0;
}

}  // namespace lm
