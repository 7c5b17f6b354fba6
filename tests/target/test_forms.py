"""`onnxport.target.forms`: each case at each opset, checked, run in ONNX Runtime, compared; or refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from onnxport import errors
from tests.target.form_cases import CASES, Case
from tests.target.running import OPSETS, model, run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_opset(case: Case):
    wanted = case.wanted()
    for opset in OPSETS:
        if opset < case.lowest:
            with pytest.raises(errors.UnsupportedError) as caught:
                model(opset, case.build, case.inputs, case.shapes, check=False)
            assert case.refusal in str(caught.value)
            continue
        # The checker wants a rank of each graph input and output.
        proto = model(opset, case.build, case.inputs, case.shapes, check=None not in case.shapes)
        if opset > case.highest or opset in case.unable:
            continue
        found = run(proto, case.inputs)
        for a, b in zip(found, wanted):
            assert a.dtype == b.dtype or "double" in case.name, f"opset {opset}: {a.dtype} for {b.dtype}"
            np.testing.assert_allclose(a, b, rtol=case.tolerance, atol=case.tolerance, err_msg=f"opset {opset}")
