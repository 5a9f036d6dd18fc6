// Four frames, as most samples of programs without recursion have: shallow ROUNDS
#include <cstdlib>

namespace {

volatile unsigned long sink;

__attribute__((noinline)) void leaf(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; ++i) sink = sink * 31 + i;
}

__attribute__((noinline)) void other_leaf(unsigned long rounds) {
  for (unsigned long i = 0; i < rounds; ++i) sink = sink ^ (i << 3);
}

__attribute__((noinline)) void work(unsigned long rounds) {
  leaf(rounds);
  other_leaf(rounds);
  ++sink;
}

}  // namespace

int main(int count, char** arguments) {
  const long rounds = count > 1 ? std::atol(arguments[1]) : 1;
  for (long i = 0; i < rounds; ++i) work(100000);
  return 0;
}
