// expect: deleted function
#include <isogloss/kernel/softmax.hpp>

int main() {
    float z[] = {1, 2, 3};
    return isogloss::kernel::cross_entropy<float>(3, z, 0, 1, 0.5) > 0;
}
