#pragma once

#include <memory>

#include "perfmap/stack_writer.hpp"

namespace perfmap {

/// What every writer borrows or keeps.
struct WriterInput {
  OutputFile& out;
  const FrameTable& table;
  StackProfile profile;
  StackWriter::Options options;
};

std::unique_ptr<StackWriter> make_folded_writer(WriterInput input);
std::unique_ptr<StackWriter> make_perf_script_writer(WriterInput input);
std::unique_ptr<StackWriter> make_speedscope_writer(WriterInput input);
std::unique_ptr<StackWriter> make_firefox_writer(WriterInput input);
std::unique_ptr<StackWriter> make_pprof_writer(WriterInput input);
std::unique_ptr<StackWriter> make_html_writer(WriterInput input);
std::unique_ptr<StackWriter> make_jsonl_writer(WriterInput input);

/// The event of a sample; one without a name where the profile does not list it.
const StackProfile::Event& event_of(const StackProfile& profile, const StackSample& sample);

}  // namespace perfmap
