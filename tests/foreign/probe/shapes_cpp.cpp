// SPDX-License-Identifier: MIT
// What C++ adds: exceptions, virtual functions, callbacks of templates, destructors.
// shapes_cpp OUTPUT SAMPLES SECONDS
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "probe.h"

#define APART __attribute__((noinline, noclone))

namespace {

/// Leaves the function at its end, also if an exception ends it.
struct Left {
  ~Left() { LEAVE(); }
};
#define ENTER_SCOPE() \
  ENTER();            \
  const Left left

volatile long number;

APART long leaf(int count) {
  long result = 0;
  for (int i = 0; i < count; ++i) result += i ^ count;
  return result;
}

struct Shape {
  virtual ~Shape() = default;
  virtual long area(int) const = 0;
};
struct Square final : Shape {
  APART long area(int side) const override {
    ENTER_SCOPE();
    return leaf(side) * side;
  }
};
struct Named final : Shape {
  std::string name = "a name that is too long to be in the string itself";
  APART long area(int side) const override {
    ENTER_SCOPE();
    return static_cast<long>(std::string(name).find("itself")) + leaf(side);
  }
};

struct Cleanup {
  APART ~Cleanup() { number = number + leaf(5); }
};

APART void thrower(int value) {
  ENTER_SCOPE();
  const Cleanup cleanup;
  if (value % 3 == 0) throw std::runtime_error("three");
  if (value % 3 == 1) throw value;
  number = number + leaf(value);
}

APART void passes_on(int value) {
  ENTER_SCOPE();
  const Cleanup cleanup;
  const std::vector<int> values(8, value);
  thrower(std::accumulate(values.begin(), values.end(), 0) / 8);
}

APART void rethrower(int value) {
  ENTER_SCOPE();
  try {
    passes_on(value);
  } catch (const std::runtime_error&) {
    number = number + leaf(6);
    throw;
  }
}

APART void catcher(int value) {
  ENTER_SCOPE();
  try {
    rethrower(value);
  } catch (const std::exception& exception) {
    number = number + static_cast<long>(std::string(exception.what()).size());
  } catch (int thrown) {
    number = number + leaf(thrown % 7);
  }
}

APART void sorts() {
  ENTER_SCOPE();
  std::vector<int> values(24);
  for (int i = 0; i < 24; ++i) values[static_cast<std::size_t>(i)] = i * 7919 % 211;
  std::sort(values.begin(), values.end(), [](int a, int b) { return leaf(2) >= 0 && a < b; });
}

APART void in_containers(int value) {
  ENTER_SCOPE();
  std::map<std::string, int> words;
  for (int i = 0; i < 6; ++i) words["word " + std::to_string(i * value)] += i;
  number = number + static_cast<long>(words.size());
}

APART void calls_back(const std::function<void(int)>& function, int value) {
  ENTER_SCOPE();
  function(value);
}

APART void all_shapes(int round, const std::vector<std::unique_ptr<Shape>>& shapes) {
  ENTER_SCOPE();
  for (const auto& shape : shapes) number = number + shape->area(round % 9);
  catcher(round);
  sorts();
  in_containers(round % 50);
  calls_back([&](int value) { number = number + shapes[0]->area(value); }, round % 5);
}

}  // namespace

int main(int count, char** arguments) {
  ENTER();
  if (count < 4) return 2;
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.push_back(std::make_unique<Square>());
  shapes.push_back(std::make_unique<Named>());
  probe_begin(arguments[1], static_cast<unsigned>(std::atoi(arguments[2])),
              static_cast<unsigned>(std::atoi(arguments[3])));
  for (int round = 0;; ++round) all_shapes(round, shapes);
}
