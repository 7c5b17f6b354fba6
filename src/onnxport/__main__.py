"""`python -m onnxport` is the command line."""

from __future__ import annotations

import sys

from onnxport.cli import main

sys.exit(main())
