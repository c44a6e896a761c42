"""Trees that can be carried, as Hypothesis draws them, and what it means that one came back as it went."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "7D"]
NAMES = [
    "?",
    *("i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", ">u8"),
    *("<f2", ">f4", "<f8", ">c8", "<c16"),
    *("S1", "S7", "<U1", ">U5"),
    *("M8", "m8", *(f"<M8[{unit}]" for unit in UNITS), ">M8[ns]", ">m8[us]"),
]
DTYPES = [np.dtype(name) for name in NAMES] + [np.dtype(np.longdouble), np.dtype(np.clongdouble), np.dtype(np.longdouble).newbyteorder(">")]

keys = st.text(max_size=6)
dtypes = st.sampled_from(DTYPES)


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> npt.NDArray[Any]:
    """An array of ``shape`` with arbitrary, but repeatable, contents."""
    random = np.random.default_rng(seed)
    if dtype.kind in "SU":
        return random.integers(0, 1000, shape).astype(dtype)
    if dtype.kind in "fc":
        return random.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    octets = random.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    return np.frombuffer(octets.tobytes(), dtype).reshape(shape).copy() if octets.size else np.empty(shape, dtype)


def _arranged(array: npt.NDArray[Any], layout: str) -> npt.NDArray[Any]:
    if layout == "fortran":
        return np.asfortranarray(array) if array.ndim else array
    if layout == "reversed":
        return array[::-1] if array.ndim else array
    if layout in ("strided", "strided across"):
        strided = np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
        return strided if layout == "strided" else strided.T
    return array


arrays = st.builds(
    lambda shape, dtype, seed, layout: _arranged(filled(shape, dtype, seed), layout),
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    dtype=dtypes,
    seed=st.integers(0, 99),
    layout=st.sampled_from(["c", "fortran", "reversed", "strided", "strided across"]),
)
scalars = st.one_of(
    st.builds(lambda dtype, seed: filled((1,), dtype, seed)[0], dtypes, st.integers(0, 99)),
    st.binary(max_size=5).map(np.bytes_),
    st.text(max_size=5).map(np.str_),
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=9), st.binary(max_size=9), scalars, arrays
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


def differs(went: Any, came: Any, where: str = "tree") -> str | None:
    """What is not the same, to the bit, or ``None``."""
    found = None
    if type(went) is not type(came) and not all(isinstance(value, np.generic) for value in (went, came)):
        found = f"{where}: {type(went)} came back as {type(came)}"
    elif isinstance(went, np.ndarray):
        found = _array_differs(went, came, where)
    elif isinstance(went, dict | list | tuple):
        keys = list(went) if isinstance(went, dict) else range(len(went))
        if keys != (list(came) if isinstance(went, dict) else range(len(came))):
            return f"{where}: {keys} came back as other keys"
        found = next((inner for key in keys if (inner := differs(went[key], came[key], f"{where}[{key!r}]"))), None)
    elif isinstance(went, np.generic):
        if went.dtype.str != came.dtype.str or went.tobytes() != came.tobytes():
            found = f"{where}: scalar {went!r} came back as {came!r}"
    elif repr(went) != repr(came):
        found = f"{where}: {went!r} came back as {came!r}"
    return found


def _array_differs(went: npt.NDArray[Any], came: npt.NDArray[Any], where: str) -> str | None:
    if (went.dtype.str, went.shape) != (came.dtype.str, came.shape):
        return f"{where}: {went.dtype.str}{went.shape} came back as {came.dtype.str}{came.shape}"
    if went.tobytes() != came.tobytes():
        return f"{where}: other contents"
    if not (came.flags.writeable and came.flags.owndata and came.flags.aligned):
        return f"{where}: not an array of its own: {came.flags}"
    fortran = went.flags.f_contiguous and not went.flags.c_contiguous
    if not (came.flags.f_contiguous if fortran else came.flags.c_contiguous):
        return f"{where}: another order"
    return None
