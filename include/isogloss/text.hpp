/// @file text.hpp  From texts to batches: vocabularies, corpora in memory or mapped, token files.
#pragma once

#include <isogloss/text/batches.hpp>
#include <isogloss/text/corpus.hpp>
#include <isogloss/text/token_file.hpp>
#include <isogloss/text/vocabulary.hpp>
