#include "answers/loops/loop_names.hpp"

#include "base/hex.hpp"
#include "formats/pypy_lines.hpp"

namespace perfmap::loops {
namespace {

std::string numbered_key(bool is_bridge, std::uint64_t id) {
  return (is_bridge ? "b" : "l") + to_hex(id);
}

std::string key_of(std::string_view name) {
  const LoopName parsed = parse_loop_name(name);
  return parsed.id ? numbered_key(parsed.is_bridge, *parsed.id) : "n" + std::string(name);
}

CompiledLoop loop_called(std::string_view name) {
  const LoopName parsed = parse_loop_name(name);
  CompiledLoop loop{
      .kind = parsed.is_bridge ? CompiledLoop::Kind::bridge : CompiledLoop::Kind::loop,
      .id = parsed.id.value_or(0),
      .name = std::string(name)};
  if (parsed.is_bridge && parsed.id) loop.name = "bridge out of Guard 0x" + to_hex(*parsed.id);
  const PypyPlace place = parse_pypy_place(parsed.place);
  loop.function = place.function;
  loop.file = place.file;
  loop.first_line = place.first_line;
  loop.line = place.line;
  return loop;
}

}  // namespace

std::uint32_t LoopNames::identity_of(std::string_view name) {
  const auto next = static_cast<std::uint32_t>(latest_.size());
  const auto [found, is_new] = identities_.try_emplace(key_of(name), next);
  if (is_new) latest_.push_back(kNone);
  return found->second;
}

std::uint32_t LoopNames::add(std::string_view name, std::vector<CompiledLoop>& all) {
  const auto index = static_cast<std::uint32_t>(all.size());
  all.push_back(loop_called(name));
  identity_of_loop_.push_back(identity_of(name));
  latest_[identity_of_loop_.back()] = index;
  return index;
}

std::uint32_t LoopNames::find_or_add(std::string_view name, std::vector<CompiledLoop>& all) {
  if (name.empty()) return kNone;
  const std::uint32_t identity = identity_of(name);
  return latest_[identity] != kNone ? latest_[identity] : add(name, all);
}

std::uint32_t LoopNames::find_key(const Key& key) const {
  const auto found = identities_.find(key);
  return found == identities_.end() ? kNone : latest_[found->second];
}

std::uint32_t LoopNames::find(std::string_view name) const { return find_key(key_of(name)); }
std::uint32_t LoopNames::find_bridge(std::uint64_t guard) const {
  return find_key(numbered_key(true, guard));
}
std::uint32_t LoopNames::find_loop(std::uint64_t number) const {
  return find_key(numbered_key(false, number));
}

}  // namespace perfmap::loops
