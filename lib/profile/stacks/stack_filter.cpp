#include "stacks/stack_filter.hpp"

#include <algorithm>

namespace perfmap {
namespace {

template <class List, class Value>
bool is_listed(const List& list, const Value& value) noexcept {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

bool passes(const StackFilter& filter, const RawStack& stack, std::string_view event) noexcept {
  if (stack.time < filter.from || stack.time > filter.to) return false;
  const std::string_view plain = event.substr(0, event.find(':'));
  return is_listed(filter.pids, stack.pid) && is_listed(filter.tids, stack.tid) &&
         is_listed(filter.comms, stack.comm) &&
         (is_listed(filter.events, event) || is_listed(filter.events, plain));
}

}  // namespace perfmap
