# SPDX-License-Identifier: MIT
"""How tests run perf record: without its list of BPF programs, for which it waits up to a second at its end."""
PERF_RECORD = ["perf", "record", "-q", "--no-bpf-event"]
