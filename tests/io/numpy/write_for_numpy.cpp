// Writes the files that ../read_with_numpy.py reads: argument 1 is the directory. The values are formulas
// that both programs know.
#include <cstdint>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/word_vectors.hpp>
#include <string>
#include <vector>

using namespace isogloss;
using namespace isogloss::io;

int main(int count, char** arguments) {
    if (count != 2) return 2;
    const std::string directory = arguments[1];

    std::vector<float> e(12);
    for (std::size_t i = 0; i < e.size(); ++i) e[i] = static_cast<float>(i) / 7.0f;
    const std::vector<double> m{1.0 / 3, -0.0, 1e300};
    const std::vector<std::int32_t> tokens{-1, 0, 2147483647};
    const std::uint64_t counter = 18446744073709551615u;
    const std::int64_t epoch = -3;
    const std::string words = "the\n\xE2\x82\xAC\n";
    write_safetensors(directory + "/model.safetensors",
                      std::vector{tensor_view<float>("E", {4, 3}, e), text_view("vocabulary", words),
                                  tensor_view<double>("update/E.m", {3}, m),
                                  tensor_view<std::int32_t>("tokens", {3, 1}, tokens),
                                  tensor_view<std::uint64_t>("counter", {}, {&counter, 1}),
                                  tensor_view<std::int64_t>("epoch", {}, {&epoch, 1}),
                                  tensor_view<float>("nothing", {0, 5}, {})},
                      {{"cell", "lstm"}, {"quote\"", "line\nend \xC3\xA9"}});

    const WordVectors v{{"the", "\xE2\x82\xAC", "12"}, 4, e};
    write_word_vectors(directory + "/words.txt", v, WordVectorFormat::word2vec_text);
    write_word_vectors(directory + "/words.bin", v, WordVectorFormat::word2vec_binary);
    write_word_vectors(directory + "/glove.txt", v, WordVectorFormat::glove_text);
}
