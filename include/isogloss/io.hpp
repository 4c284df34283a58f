/// @file io.hpp  Files: checkpoints in the safetensors format, and word vectors. Needs nlohmann-json.
#pragma once

// IWYU pragma: begin_exports
#include <isogloss/file/output_file.hpp>
#include <isogloss/file/reader.hpp>
#include <isogloss/io/checkpoint.hpp>
#include <isogloss/io/compact.hpp>
#include <isogloss/io/safetensors.hpp>
#include <isogloss/io/tensor_view.hpp>
#include <isogloss/io/torch.hpp>
#include <isogloss/io/word_vectors.hpp>
// IWYU pragma: end_exports
