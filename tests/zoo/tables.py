"""What the commands of this folder share: trying one export, and a table of the results by opset."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence

# (what is in the row, opset, cell)
Row = tuple[tuple[str, ...], int, str]


def tried(label: str, opset: int, attempt: Callable[[], tuple[bool, str]], trace: bool) -> str:
    """Runs and prints one attempt, which tells whether all is right and in which words; gives the cell."""
    start = time.perf_counter()
    try:
        right, text = attempt()
        verdict = "ok" if right else "WRONG"
    except Exception as error:
        verdict, text = "FAILED", f"{type(error).__name__}: {str(error)[:400]}"
        if trace:
            traceback.print_exc()
    print(f"{label} {opset:3d} {verdict:7s} {time.perf_counter() - start:5.1f}s {text}", flush=True)
    return text if verdict == "ok" else verdict


def table(titles: Sequence[str], rows: Sequence[Row]) -> str:
    """A row for each of what the rows name, a column for each opset."""
    opsets = sorted({opset for _, opset, _ in rows})
    lines = ["| " + " | ".join([*titles, *map(str, opsets)]) + " |", "|---" * (len(opsets) + len(titles)) + "|"]
    for names in dict.fromkeys(row[0] for row in rows):
        cells = {opset: cell for other, opset, cell in rows if other == names}
        lines.append("| " + " | ".join([*names, *(cells.get(opset, "") for opset in opsets)]) + " |")
    return "\n".join(lines) + "\n"
