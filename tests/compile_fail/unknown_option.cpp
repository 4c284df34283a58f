// expect: has no non-static data member named .unit.|field designator 'unit' does not refer to any field
// What docs/compiler_messages.md advises where add() says that it cannot convert the options.
#include <isogloss/node/lstm.hpp>

int main() { isogloss::Lstm<float>::Options options{.unit = 8}; }
