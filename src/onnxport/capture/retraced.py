"""Models that compute derivatives, or call transforms of torch.func in ways that neither the tracer nor torch.export follows.

PyTorch's symbolic tracing runs them once below autograd and torch.func, so that what is left is operators; torch.export reads those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxport import errors
from onnxport.capture import torch_private
from onnxport.capture.dynamic import Wanted


class Retraced(torch.nn.Module):
    """What `module(*tensors)` does, as operators alone. Its weights are those of the module, under the same names.

    Raises `CaptureError` where the program took a way that holds for some of the wanted sizes only.
    """

    def __init__(self, module: torch.nn.Module, tensors: Sequence[torch.Tensor], wanted: Sequence[Wanted]):
        super().__init__()
        self.model: Any = module.model
        self.seen = module.seen
        self._names = list(_weights(module))

        def run(weights: list[torch.Tensor], *given: torch.Tensor) -> Any:
            return torch.func.functional_call(module, dict(zip(self._names, weights, strict=True)), given)

        weights = [weight.detach() for weight in _weights(module).values()]
        self.operators, conditions = torch_private.symbolically(run, weights, tensors, [set(asks) for asks in wanted])
        if conditions:
            raise errors.CaptureError("a derivative or a transform of torch.func is computed in a model that branches on a dynamic size "
                                      f"or on data ({'; '.join(conditions)}); make the axis static, or take no number from the data")

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The outputs of the module."""
        weights = _weights(self)
        return self.operators([weights[name] for name in self._names], *tensors)


def _weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {f"model.{name}": tensor for name, tensor in (*module.model.named_parameters(), *module.model.named_buffers())}  # type: ignore[union-attr]
