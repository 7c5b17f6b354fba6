"""What makes a run of the tests the same as the last: only a change of the project turns it red.

Hypothesis tries the same 200 examples in every `make test`; `make sweep` tries 5000 others and finds what those 200 do not.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

settings.register_profile("test", max_examples=200, derandomize=True, deadline=None, database=None)
settings.register_profile("sweep", max_examples=5000, deadline=None, database=None, print_blob=True)
settings.load_profile("test")  # `--hypothesis-profile` comes after it


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Random tensors do not depend on which tests ran before in the same process."""
    torch.manual_seed(0)
