// SPDX-License-Identifier: MIT
#pragma once

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Support/raw_ostream.h>
#include <perfmap_writer.h>
#include <vector>

/// Names the functions that LLVM ORC loads, for perf: register it with an RTDyldObjectLinkingLayer.
/// With a directory it writes a jitdump with lines, without one the map of the process.
class PerfmapListener : public llvm::JITEventListener {
  perfmap_error error_{sizeof error_, 0, 0, "", 0, ""};
  perfmap_jitdump* dump_ = nullptr;
  void report() { llvm::errs() << error_.message << '\n'; }

 public:
  explicit PerfmapListener(const char* directory) {
    if (directory && perfmap_jitdump_open_own(directory, nullptr, &dump_, &error_)) report();
  }
  ~PerfmapListener() override { perfmap_jitdump_free(dump_); }

  void notifyObjectLoaded(ObjectKey, const llvm::object::ObjectFile& object,
                          const llvm::RuntimeDyld::LoadedObjectInfo& loaded) override {
    const auto owner = loaded.getObjectForDebug(object);
    const auto debug = llvm::DWARFContext::create(*owner.getBinary());
    const auto frames = llvm::find_if(object.sections(), [](auto& section) {
      return cantFail(section.getName()) == ".eh_frame";
    });
    const std::uint64_t frames_at = loaded.getSectionLoadAddress(*frames);
    for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(*owner.getBinary())) {
      if (cantFail(symbol.getType()) != llvm::object::SymbolRef::ST_Function || !size) continue;
      const std::uint64_t address = cantFail(symbol.getAddress());
      const std::string name = cantFail(symbol.getName()).str();
      const void* const code = reinterpret_cast<void*>(address);
      if (!dump_) perfmap_state_write_entry(code, size, name.c_str());
      if (!dump_) continue;
      std::vector<perfmap_jitdump_line> lines;
      const auto table = debug->getLineInfoForAddressRange(
          {address, cantFail(symbol.getSection())->getIndex()}, size,
          {llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath});
      for (const auto& [at, info] : table)
        lines.push_back({at, int(info.Line), int(info.Column), info.FileName.c_str()});
      perfmap_jitdump_function function{sizeof function, address, size,         name.data(),
                                        name.size(),     code,    lines.data(), lines.size()};
      char room[1024];
      perfmap_unwind_from_eh_frame(&function, reinterpret_cast<void*>(frames_at), frames->getSize(),
                                   frames_at, room, sizeof room);
      if (perfmap_jitdump_load(dump_, &function, nullptr, &error_)) report();
    }
  }
};
