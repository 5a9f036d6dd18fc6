#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package's annotations are complete and fit together, also for Python 3.9:
# python_types.sh SOURCE CACHE. Exit status 77: no mypy is installed.
set -eu
command -v mypy >/dev/null || { echo "skipped: no mypy here"; exit 77; }
cd "$1"
mypy --strict --python-version 3.9 --cache-dir "$2" perfmap
