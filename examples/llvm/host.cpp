// SPDX-License-Identifier: MIT
// Compiles LLVM IR with ORC and runs it: host FILE.bc m|j SECONDS DIRECTORY. Writes a perf map (m)
// or, to DIRECTORY, a jitdump (j): see perfmap_listener.hpp.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <unistd.h>

#include "perfmap_listener.hpp"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  PerfmapListener listener(*argv[2] == 'j' ? argv[4] : nullptr);
  const llvm::ExitOnError check;
  auto context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic problem;
  auto module = llvm::parseIRFile(argv[1], problem, *context);
  if (module == nullptr) return 1;
  auto jit =
      check(llvm::orc::LLJITBuilder()
                .setObjectLinkingLayerCreator(
                    [&](llvm::orc::ExecutionSession& session, const llvm::Triple&) {
                      auto layer = std::make_unique<llvm::orc::RTDyldObjectLinkingLayer>(
                          session, [] { return std::make_unique<llvm::SectionMemoryManager>(); });
                      layer->registerJITEventListener(listener);
                      layer->setProcessAllSections(true);  // including debug information
                      return layer;
                    })
                .create());
  check(jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  const auto outer =
      reinterpret_cast<std::uint64_t (*)(std::uint64_t)>(check(jit->lookup("outer")).getAddress());
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[3]));
  std::uint64_t sum = 0;
  while (std::chrono::steady_clock::now() < end) sum += outer(20000);
  std::printf("%d %d\n", static_cast<int>(::getpid()), static_cast<int>(sum & 1));
  return 0;
}
