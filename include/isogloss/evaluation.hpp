/// @file evaluation.hpp  Evaluation beyond perplexity: caches, dynamic evaluation, n-best lists, the unigram model.
#pragma once

#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/evaluation/evaluate_dynamically.hpp>
#include <isogloss/evaluation/neural_cache.hpp>
#include <isogloss/evaluation/score_hypotheses.hpp>
#include <isogloss/evaluation/top_k.hpp>
#include <isogloss/evaluation/unigram.hpp>
#include <isogloss/update/dynamic.hpp>
