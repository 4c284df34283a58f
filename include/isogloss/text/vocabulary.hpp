/// @file vocabulary.hpp  The words of a text, their numbers and their counts.
#pragma once

// IWYU pragma: begin_exports
#include <isogloss/text/vocabulary_builder.hpp>
#include <isogloss/text/vocabulary_core.hpp>
#include <isogloss/text/vocabulary_text.hpp>
// IWYU pragma: end_exports
