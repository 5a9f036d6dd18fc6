// Compiles LLVM IR with ORC and runs it: llvm_host FILE.bc m|j SECONDS DIRECTORY. Writes a perf map
// (m) or, to DIRECTORY, a jitdump (j) with perfmap's C interface.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/SymbolSize.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <perfmap.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

/// Writes an entry for each function that LLVM has loaded, with the name of its symbol.
class Listener : public llvm::JITEventListener {
 public:
  /// Without a directory it writes to the perf map.
  explicit Listener(const char* directory) {
    if (directory == nullptr) return;
    perfmap_error error{};
    error.struct_size = sizeof error;
    perfmap_jitdump_options options{};
    options.struct_size = sizeof options;
    if (perfmap_jitdump_open_own(directory, &options, &dump_, &error) != PERFMAP_OK) {
      std::fprintf(stderr, "cannot write a jitdump: %s\n", error.message);
      std::exit(1);
    }
  }
  ~Listener() override { perfmap_jitdump_free(dump_); }

  void notifyObjectLoaded(ObjectKey, const llvm::object::ObjectFile& object,
                          const llvm::RuntimeDyld::LoadedObjectInfo& loaded) override {
    const auto owner = loaded.getObjectForDebug(object);
    const llvm::object::ObjectFile& file = *owner.getBinary();
    const auto debug = llvm::DWARFContext::create(file);
    for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(file)) {
      auto type = symbol.getType();
      auto name = symbol.getName();
      auto address = symbol.getAddress();
      auto section = symbol.getSection();
      if (!type || *type != llvm::object::SymbolRef::ST_Function || !name || !address || !section) {
        continue;
      }
      write(*address, size, name->str(),
            debug->getLineInfoForAddressRange(
                {*address, (*section)->getIndex()}, size,
                llvm::DILineInfoSpecifier(
                    llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath)));
    }
  }

 private:
  void write(std::uint64_t address, std::uint64_t size, const std::string& name,
             const llvm::DILineInfoTable& table) {
    if (dump_ == nullptr) {
      perfmap_state_write_entry(reinterpret_cast<void*>(address), size, name.c_str());
      return;
    }
    std::vector<perfmap_jitdump_line> lines;
    for (const auto& [at, info] : table) {
      lines.push_back({at, static_cast<std::int32_t>(info.Line),
                       static_cast<std::int32_t>(info.Column), info.FileName.c_str()});
    }
    perfmap_jitdump_function function{};
    function.struct_size = sizeof function;
    function.start = address;
    function.size = size;
    function.name = name.data();
    function.name_size = name.size();
    function.code = reinterpret_cast<void*>(address);
    function.lines = lines.data();
    function.line_count = lines.size();
    perfmap_error error{};
    error.struct_size = sizeof error;
    if (perfmap_jitdump_load(dump_, &function, nullptr, &error) != PERFMAP_OK) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.message);
    }
  }

  perfmap_jitdump* dump_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Listener listener(*argv[2] == 'j' ? argv[4] : nullptr);
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
