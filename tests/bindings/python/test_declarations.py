# SPDX-License-Identifier: MIT
"""What the package declares of the C interface is what the headers declare."""
import ctypes
import pathlib
import sys
import unittest

from perfmap import _library, errors, process_map, profile, reader, stacks, writer

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
import c_header  # noqa: E402

CORE, PROFILE = (c_header.text_of(ROOT / "lib/include", names) for names in (c_header.CORE, c_header.PROFILE))
KINDS = {None: "v", ctypes.c_int: "i4", ctypes.c_int32: "i4", ctypes.c_uint32: "u4", ctypes.c_uint64: "u8",
         ctypes.c_size_t: "u8", ctypes.c_void_p: "p", ctypes.c_char_p: "p"}
ENUMS = {
    "perfmap_status": errors.Status, "perfmap_reason": errors.Reason, "perfmap_fork_policy": process_map.ForkPolicy,
    "perfmap_state_start": process_map.StartState, "perfmap_name_policy": process_map.NamePolicy,
    "perfmap_jitlog_clock": writer.Clock, "perfmap_overlap": reader.Overlap,
    "perfmap_process_begin": profile.ProcessBegin, "perfmap_imported": profile.Imported,
    "perfmap_region_kind": profile.RegionKind, "perfmap_jit_room": profile.JitRoom, "perfmap_doubt": profile.Doubt,
    "perfmap_detail": profile.Detail, "perfmap_no_name": profile.NoName,
    "perfmap_frame_source": stacks.FrameSource, "perfmap_stack_end": stacks.StackEnd,
}
NOT_HERE = {"perfmap_layout_kind", "perfmap_trampoline_backend", "perfmap_cpu_mode", "perfmap_frame_kind"}


class Declarations(unittest.TestCase):
    def test_functions_have_the_types_of_the_headers(self):
        for text, table in ((CORE, _library.CORE), (PROFILE, _library.PROFILE)):
            declared = c_header.functions(text)
            for function, (result, *parameters) in table.items():
                with self.subTest(function=function):
                    self.assertEqual((KINDS[result], [KINDS[one] for one in parameters]), declared[function])

    def test_every_function_of_the_libraries_can_be_called(self):
        for library, table in ((_library.core(), _library.CORE), (_library.profile(), _library.PROFILE)):
            for function in table:
                self.assertTrue(callable(getattr(library, function)))

    def test_structures_have_the_members_of_the_headers(self):
        for text, library in ((CORE, _library.core()), (PROFILE, _library.profile())):
            declared = c_header.structs(text)
            self.assertEqual(sorted(declared), sorted(library.structures))
            for struct, members in declared.items():
                with self.subTest(struct=struct):
                    self.assertEqual([member for member, *_ in library.structures[struct]._fields_],
                                     [member for member, _ in members])

    def test_enumerators_have_the_numbers_of_the_headers(self):
        declared = c_header.enumerators(CORE + PROFILE)
        self.assertEqual(set(declared) - NOT_HERE, set(ENUMS))
        for name, type_ in ENUMS.items():
            with self.subTest(enum=name):
                expected = {member.removeprefix("E_"): number
                            for member, number in declared[name].items()}
                here = {member.name: member.value for member in type_}
                here.pop("NONE", None) if "NONE" not in expected else None
                self.assertEqual(here, expected)

    def test_a_member_that_the_library_does_not_have_is_an_error(self):
        with self.assertRaises(errors.PerfmapError) as raised:
            _library.new(_library.core(), "perfmap_error", unheard_of=1)
        self.assertEqual(raised.exception.status, errors.Status.UNSUPPORTED)

    def test_a_struct_is_filled_in_whole(self):
        made = _library.new(_library.core(), "perfmap_state_options", mapped=1)
        self.assertEqual(made.struct_size, ctypes.sizeof(made))
