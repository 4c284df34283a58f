// Compiled without the instructions of this machine (-march=x86-64), and linked with units that use them.
#include "config_unit.hpp"

UnitResult train_in_portable_unit() { return train_in_this_unit(); }
