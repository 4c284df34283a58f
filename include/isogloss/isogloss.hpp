/// @file isogloss.hpp  The modelling core in one include: graph, nodes, losses, updates, batches, perplexity.
#pragma once

#include <isogloss/config.hpp>
#include <isogloss/evaluation/evaluate.hpp>
#include <isogloss/evaluation/top_k.hpp>
#include <isogloss/graph/describe.hpp>
#include <isogloss/graph/graph.hpp>
#include <isogloss/loss/activation_penalty.hpp>
#include <isogloss/loss/augmented.hpp>
#include <isogloss/loss/cross_entropy.hpp>
#include <isogloss/loss/gaussian_likelihood.hpp>
#include <isogloss/loss/softmax_loss.hpp>
#include <isogloss/loss/squared_error.hpp>
#include <isogloss/loss/total.hpp>
#include <isogloss/node/concatenate.hpp>
#include <isogloss/node/dropout.hpp>
#include <isogloss/node/embedding.hpp>
#include <isogloss/node/gru.hpp>
#include <isogloss/node/linear.hpp>
#include <isogloss/node/lstm.hpp>
#include <isogloss/node/nonlinearity.hpp>
#include <isogloss/node/qrnn.hpp>
#include <isogloss/node/reverse.hpp>
#include <isogloss/node/rhn.hpp>
#include <isogloss/node/rnn.hpp>
#include <isogloss/node/softmax.hpp>
#include <isogloss/node/sum.hpp>
#include <isogloss/text/batches.hpp>
#include <isogloss/update/adam.hpp>
#include <isogloss/update/schedule.hpp>
#include <isogloss/update/sgd.hpp>
#include <isogloss/update/weight_average.hpp>
#include <isogloss/update/weight_drop.hpp>
#ifdef ISOGLOSS_COMPILED
#include <isogloss/compiled.hpp>
#endif
