// SPDX-License-Identifier: MIT
#include "elf/demangle.hpp"

#include <random>

#include "support/catch.hpp"

namespace perfmap::demangle_test {
namespace {

/// The demangled name, or the name itself.
std::string demangled(std::string_view name) { return demangle(name).value_or(std::string(name)); }

constexpr const char* kRustNames[] = {
    "_RNvNtCs123_4core3fmt5write",
    "_RINvCs6GmmlP4bgsG_1r3genTRDG_INtNtNtCs_4core3ops8function2FnTRL0_hEEp6OutputB1b_EL_EEB2_",
    "_RNvMCs1_1rINtB2_2I8Kan5_E1q",
    "_RNCNvXs_CsbQ_1rRShNtB4_2Tr2go0B4_",
    "_RNvNtCs6GmmlP4bgsG_1ru9gre_6ka8iu8nave_6pa",
};

/// A back reference in a Rust name, whose offset does not count "_R".
std::string back_to(std::size_t offset) {
  static constexpr char kDigits[] =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (offset == 0) return "B_";
  std::string digits;
  for (std::size_t rest = offset - 1; digits.empty() || rest != 0; rest /= 62) {
    digits.insert(digits.begin(), kDigits[rest % 62]);
  }
  return "B" + digits + "_";
}

/// Each function type has the previous one as a parameter, and again by a reference to it.
std::string doubled_functions(std::size_t times) {
  static constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string type = "1A";
  for (std::size_t i = 0; i < times; ++i) {
    type = "Fv" + type + "S" + (i == 0 ? "" : std::string(1, kDigits[i - 1])) + "_E";
  }
  return "_Z1gP" + type;
}

/// A C++ type whose parts refer to others. Deeper ones are more often plain.
std::string random_type(std::mt19937& random, unsigned depth) {
  static constexpr const char* kPlain[] = {"i", "1A", "1A", "S_", "S_", "S0_", "S1_", "S3_", "T_"};
  if (random() % 6 < depth) return kPlain[random() % std::size(kPlain)];
  const auto types = [&] {
    std::string text;
    for (auto i = 1 + random() % 4; i > 0; --i) text += random_type(random, depth + 1);
    return text;
  };
  switch (random() % 12) {
    case 0: return "P" + random_type(random, depth + 1);
    case 1: return "1BIJ" + types() + "EE";
    case 2: return "Fv" + types() + "E";
    case 3: return "1BIDpT_E";
    case 4: return "Z1hI" + types() + "EvT_E1L";  // a local name: its T_ differs
    default: return "1BI" + types() + "E";
  }
}

/// A function template with such types.
std::string random_cxx_name(std::mt19937& random) {
  std::string name = "_Z1fIJ";
  for (auto i = 1 + random() % 5; i > 0; --i) name += random_type(random, 0);
  name += "EEv";
  for (auto i = 1 + random() % 5; i > 0; --i) name += random_type(random, 0);
  return name;
}

/// Each argument is a tuple that contains the previous one twice.
std::string doubled_tuples(int times) {
  std::string name = "_RINvC1f1gTuuE";
  for (int i = 0; i < times; ++i) {
    const std::string back = back_to(name.rfind('T') - 2);
    name += "T" + back + back + "E";
  }
  return name + "E";
}

}  // namespace

TEST_CASE("C++ names are demangled, and suffixes are kept", "[demangle]") {
  CHECK(demangled("_ZN1a1bEi") == "a::b(int)");
  CHECK(demangled("_Z1fv@plt") == "f()@plt");
  CHECK(demangled("_Z1fv@@VERSION_1.2") == "f()@@VERSION_1.2");
  CHECK(demangled("_Z1fv.cold") == "f() [clone .cold]");
  CHECK_FALSE(demangle("main"));
  CHECK_FALSE(demangle("i"));  // the type "int"
  CHECK_FALSE(demangle("_Znonsense"));
  CHECK_FALSE(demangle(std::string("_Z1fv\0g", 7)));
  CHECK_FALSE(demangle(""));
}

TEST_CASE("template constructors keep their scope, with types of any length", "[demangle]") {
  const std::string text =
      "std::__cxx11::basic_string<char, std::char_traits<char>, "
      "std::allocator<char> > const";
  CHECK(demangled(
            "_ZNSt4pairIKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEmEC4IJRS6_EJLm0EEJEJ"
            "EEERSt5tupleIJDpT_EERSA_IJDpT1_EESt12_Index_tupleIJXspT0_EEESJ_IJXspT2_EEE") ==
        "std::pair<" + text + ", unsigned long>::pair<" + text + "&, 0ul>(std::tuple<" + text +
            "&>&, std::tuple<>&, std::_Index_tuple<0ul>, std::_Index_tuple<>)");
  // Ten references to one type do not double the length each.
  CHECK(demangled(
            "_ZN2v88internal18JSTemporalDuration11ConstructorEPNS0_7IsolateENS0_6HandleINS0_10JS"
            "FunctionEEENS4_INS0_10HeapObjectEEENS4_INS0_6ObjectEEESA_SA_SA_SA_SA_SA_SA_SA_SA_")
            .starts_with("v8::internal::JSTemporalDuration::Constructor("));
  // Text that looks like a reference in an identifier is not one.
  CHECK(demangled("_Z1fI8S_S_S_S_EvT_") == "void f<S_S_S_S_>(S_S_S_S_)");
}

TEST_CASE("OCaml names have dots between their parts", "[demangle]") {
  CHECK(demangled("camlStdlib__List__map_123") == "Stdlib.List.map_123");
  CHECK(demangled("camlStdlib__List.map_123") == "Stdlib.List.map_123");  // OCaml 5.1
  CHECK(demangled("camlDune__exe__Main__entry") == "Dune.exe.Main.entry");
  CHECK(demangled("camlMain__$2b$2b_7") == "Main.++_7");
  CHECK(demangled("camlMain__a$") == "Main.a$");
  CHECK(demangled("camlMain__$3A$3a_7") == "Main.::_7");
  for (const std::string digits : {"3g", "g3", "3/", "/3", "3:", "3@", "3G", "3`", "20", "7f"}) {
    CHECK(demangled("camlMain__a$" + digits) == "Main.a$" + digits);
  }
  CHECK(demangled("camlMain__a$21$7e") == "Main.a!~");
  CHECK(demangled("camlMain__a$zz$00") == "Main.a$zz$00");
  CHECK_FALSE(demangle("camlMalloc"));
  CHECK_FALSE(demangle("camlMalloc__"));
  CHECK_FALSE(demangle("camlMalloc."));
  CHECK_FALSE(demangle("caml_garbage_collection"));
  CHECK_FALSE(demangle("caml"));
}

TEST_CASE("D names stay mangled", "[demangle]") {
  CHECK_FALSE(demangle("_D4core6memory2GC6mallocFNbkkxC8TypeInfoZPv"));
  CHECK_FALSE(demangle("_Dmain"));
}

TEST_CASE("names of JIT code are demangled if the whole name is mangled", "[demangle]") {
  CHECK(demangle_code("_Z4mapsi") == "maps(int)");
  CHECK(demangle_code("_Z4mapsi [tier1]") == "maps(int) [tier1]");
  CHECK(demangle_code("_Z4mapsi (inlined)") == "maps(int) (inlined)");
  CHECK(demangle_code("_RNvNtCs123_4core3fmt5write") == "core::fmt::write");
  CHECK(demangle_code("camlMain__fib_268") == "Main.fib_268");
  CHECK(demangle_code("_ZN8__main__3addB2v1B4c8tJExx") ==
        "__main__::add[abi:v1][abi:c8tJ](long long, "
        "long long)");  // Numba
  for (const char* const name :
       {"maps", "_Z4maps i", "_Z4mapsi tier1", "JS:*_Z4mapsi /a.js:1", "_Znonsense [tier1]", "i",
        "py::_Z4mapsi:/a.py", "$_Z4mapsi/1", "_R", "_Zz", "", " _Z4mapsi", "_Z4mapsi\n",
        "julia__Z4mapsi_12", "void _Z4mapsi()"}) {
    CAPTURE(name);
    CHECK_FALSE(demangle_code(name));
  }
}

TEST_CASE("Rust legacy names lose their hash and their escapes", "[demangle]") {
  CHECK(demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE") == "core::fmt::Formatter::pad");
  CHECK(demangled("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234") == "core::fmt::write");
  CHECK(demangled("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
                  "17h930b740aa94f1d3aE") == "<Test + 'static as foo::Bar<Test>>::bar");
  CHECK(demangled("_ZN5$u7e$17h0123456789abcdefE") == "~");
  CHECK(demangled("_ZN5$ub5$17h0123456789abcdefE") == "\xc2\xb5");
  CHECK(demangled("_ZN7$u4e16$17h0123456789abcdefE") == "\xe4\xb8\x96");
  CHECK(demangled("_ZN8$u1f600$17h0123456789abcdefE") == "\xf0\x9f\x98\x80");
  CHECK(demangled("_ZN4$no$17h0123456789abcdefE") == "$no$");
  CHECK(demangled("_ZN3foo17h0123456789abcdeE") == "_ZN3foo17h0123456789abcdeE");
  CHECK(demangled("_ZN3foo17hello_this_is_lonE") == "foo::hello_this_is_lon");
}

TEST_CASE("Rust v0 names are printed as in source text", "[demangle]") {
  CHECK(demangled(kRustNames[0]) == "core::fmt::write");
  CHECK(demangled("_RINvCs1_1r3genThEEB2_") == "r::gen::<(u8,)>");
  CHECK(demangled("_RINvC1r3genAAtj3_j4_E") == "r::gen::<[[u16; 3]; 4]>");
  CHECK(demangled("_RINvC1r3genFUKChOaEzE") ==
        "r::gen::<unsafe extern \"C\" fn(u8, *mut i8) -> !>");
  CHECK(demangled("_RINvC1r3genFG0_RL1_hQL0_hEB2_E") ==
        "r::gen::<for<'a, 'b> fn(&'a u8, &'b mut u8) -> r>");
  CHECK(demangled("_RINvC1r3genKb1_Kc78_Kan5_E") == "r::gen::<true, 'x', -5>");
  CHECK(demangled("_RNCNvC1r4main0") == "r::main::{closure#0}");
  CHECK(demangled("_RNCNvC1r4mains_0") == "r::main::{closure#1}");
  CHECK(demangled("_RNvXC1rNtB2_1SNtB2_2Tr2go") == "<r::S as r::Tr>::go");
  CHECK(demangled("_RNvMC1rNtB2_1S2go.llvm.77") == "<r::S>::go");
  CHECK(demangled(kRustNames[4]) ==
        "r::gr\xc3\xb6\xc3\x9f"
        "e::na\xc3\xafve");
  CHECK_FALSE(demangle("_R"));
  CHECK_FALSE(demangle("_RNvC1r"));
  CHECK_FALSE(demangle("_RNvC1r99f"));
  CHECK_FALSE(demangle("_RNvC1r1fx"));
}

TEST_CASE("names that would expand to gigabytes are not demangled", "[demangle][hostile]") {
  // Each template has the previous one twice as arguments: X<X<A, A>, X<A, A>> and so on.
  std::string doubling = "_Z1f1A1XIS_S_E";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t i = 1; i < 34; ++i) {
    doubling += std::string("S0_IS") + digits[i] + "_S" + digits[i] + "_E";
  }
  CHECK_FALSE(is_reasonable_cxx_name(doubling));
  CHECK_FALSE(demangle(doubling));
  CHECK_FALSE(demangle("_Z" + std::string(10000, 'P')));
  CHECK_FALSE(is_reasonable_cxx_name("_Z1fIJ" + std::string(200, 'i') + "EEvDp1XIDp1YIDpT_EE"));
  CHECK(is_reasonable_cxx_name(doubled_functions(10)));
  CHECK(demangled(doubled_functions(2)) == "g(void (*)(void (A, A), void (A, A)))");
  CHECK(is_reasonable_cxx_name(doubled_functions(16)));  // 2.8 million bytes at most
  CHECK_FALSE(is_reasonable_cxx_name(doubled_functions(17)));
  CHECK_FALSE(is_reasonable_cxx_name(doubled_functions(30)));
  // A false reference in an identifier does not reduce the estimate for the true ones.
  CHECK_FALSE(
      is_reasonable_cxx_name("_Z1f60S_S0_S1_S2_S3_S4_S5_S6_S7_S8_S9_SA_SB_SC_SD_SE_SF_SG_SH_SI_Sx" +
                             doubled_functions(30).substr(5)));
  CHECK(is_reasonable_cxx_name(
      "_ZSt4moveIRKNSt6vectorIiSaIiEEEEONSt16remove_referenceIT_E4typeEOS7_"));

  CHECK(demangle(doubled_tuples(2)) ==
        "f::g::<((), ()), (((), ()), ((), ())), "
        "((((), ()), ((), ())), (((), ()), ((), ())))>");
  CHECK_FALSE(demangle(doubled_tuples(40)));
  CHECK_FALSE(demangle("_RINvC1f1gB_E"));
  CHECK_FALSE(demangle("_R" + std::string(3000, 'I')));
  CHECK_FALSE(demangle("_RINvC1f1g" + std::string(3000, 'S') + "uE"));
}

TEST_CASE("C++ names on which libstdc++ 12 hangs are rejected", "[demangle][hostile]") {
  for (const char* const name : {"_Z1fDTsrplDE", "_ZptDOsrptD", "_Z1fIXsrptDEE", "_Z1fDOsrplDE"}) {
    CHECK_FALSE(demangle(name));
  }
}

TEST_CASE("C++ names that can be parsed in many ways are not demangled", "[demangle][hostile]") {
  // Arguments after "cvT_" may belong to the parameter or to the operator.
  std::string name = "_Z";
  for (int i = 0; i < 60; ++i) name += "cvT_I";
  CHECK_FALSE(demangle(name + "i"));
}

TEST_CASE("damaged names are demangled within bounds", "[demangle][hostile]") {
  std::mt19937 random(11);
  const std::string alphabet = "BCDEFGIKLMNQRSTXY_0123abcdehjnpsuvz";
  std::size_t readable = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string name = kRustNames[random() % std::size(kRustNames)];
    for (unsigned i = random() % 4; i > 0; --i) {
      const std::size_t at = 2 + random() % (name.size() - 2);
      if (random() % 3 == 0) {
        name.insert(at, name.substr(2 + random() % (name.size() - 2), random() % 12));
      } else {
        name[at] = alphabet[random() % alphabet.size()];
      }
    }
    const auto answer = demangle(name);
    readable += answer.has_value();
    if (answer && answer->size() > 65536) FAIL("too long an answer");
  }
  CHECK(readable > 4000);
}

TEST_CASE("accepted C++ names expand to at most 16 MiB", "[demangle][hostile]") {
  std::mt19937 random(5);
  std::size_t readable = 0;
  for (int round = 0; round < 60000; ++round) {
    const std::string name = random_cxx_name(random);
    if (!is_reasonable_cxx_name(name)) continue;
    const LibibertyText text(cplus_demangle_v3(name.c_str(), DMGL_PARAMS | DMGL_TYPES));
    if (text == nullptr) continue;
    ++readable;
    if (std::string_view(text.get()).size() > (std::size_t{4} << 22)) FAIL(name);
  }
  CHECK(readable > 300);
}

}  // namespace perfmap::demangle_test
