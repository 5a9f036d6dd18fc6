// Exercises containers, trees and recursion: tree ROUNDS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace {

struct Node {
  explicit Node(long value) : key(value) {}
  Node* left = nullptr;
  Node* right = nullptr;
  long key;
};

Node* insert(Node* node, long key) {
  if (node == nullptr) return new Node(key);
  if (key < node->key) {
    node->left = insert(node->left, key);
  } else {
    node->right = insert(node->right, key);
  }
  return node;
}
long sum(const Node* node) {
  return node != nullptr ? sum(node->left) + node->key + sum(node->right) : 0;
}
void destroy(Node* node) {
  if (node == nullptr) return;
  destroy(node->left);
  destroy(node->right);
  delete node;
}

long of_strings(int seed) {
  std::map<std::string, int> counts;
  for (int i = 0; i < 400; ++i) ++counts[std::to_string((i * 7919 + seed) % 1000)];
  std::vector<std::string> names;
  for (const auto& entry : counts) names.push_back(entry.first);
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a > b;
  });
  return static_cast<long>(names.size());
}

__attribute__((noinline)) long work(int seed) {
  Node* tree = nullptr;
  std::srand(static_cast<unsigned>(seed));
  for (int i = 0; i < 500; ++i) tree = insert(tree, std::rand());
  const long total = sum(tree);
  destroy(tree);
  return total + of_strings(seed);
}

__attribute__((noinline)) long deep(int depth, int seed) {
  volatile char room[200];
  room[depth] = static_cast<char>(seed);
  return depth == 0 ? work(seed) : deep(depth - 1, seed) + room[depth];
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) * 100 : 1000;
  long total = 0;
  for (int i = 0; i < rounds; ++i) total += deep(i % 12, i);
  std::printf("%ld\n", total);
}
