#include "commands.hpp"
namespace lm { int score(const ScoreOptions&) { return 0; } }
