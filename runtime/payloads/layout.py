"""Arrays as bytes, and back: which dtypes are carried, under which name, and in which layout.

Rule 1.  A dtype travels as numpy's own short name for it, byte order included (``<f4``, ``>i8``, ``|S5``, ``<M8[ns]``), and only the names
         below are understood: a name from the wire never reaches numpy's parser unless it has one of these forms.
Rule 2.  What cannot be carried bit by bit is refused, never converted.
Rule 3.  An array is carried as its memory, in C order or in Fortran order as it lies. Any other layout is copied to C order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_DIMENSIONS = 32
"""What every supported numpy can hold."""

_ADDRESSABLE = 2**63 - 1

_WIDE = np.dtype(np.longdouble).itemsize
_PRECISION = int(np.finfo(np.longdouble).nmant)
"""Two machines may give the same size to different long doubles, so the bits of the mantissa are part of the name."""

_NAME = re.compile(
    r"(?P<numpy>[<>|](?:b1|[iu][1248]|f[248]|c(?:8|16)|[SU][1-9][0-9]{0,8}"
    r"|[mM]8(?:\[[0-9]{0,9}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
    r"|f(?:12|16)|c(?:24|32)))(?:/(?P<precision>[0-9]{1,3}))?"
)

Array = npt.NDArray[Any]


class Unfit(Exception):
    """A value that cannot be carried: why, and what to do about it. Where it was is said by whoever catches this."""


def array_of(value: Any) -> Array:
    """The plain array that ``value`` is. A memory map counts as one; other subclasses would not come back as they went."""
    if type(value) is np.ndarray or isinstance(value, np.memmap):
        array: Array = value.view(np.ndarray)
    elif isinstance(value, np.ma.MaskedArray):
        raise Unfit("masked arrays cannot be carried; send x.filled(), or x.data and x.mask apart")
    else:
        raise Unfit(f"arrays of the subclass {type(value).__name__} cannot be carried; send np.asarray(x)")
    if array.ndim > MAX_DIMENSIONS:
        raise Unfit(f"arrays of more than {MAX_DIMENSIONS} dimensions cannot be carried, this one has {array.ndim}; reshape it")
    return array


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of ``dtype`` on the wire. Raises ``Unfit``."""
    if dtype.metadata is not None:
        raise Unfit(f"the metadata of dtype {dtype} cannot be carried; send x.astype({dtype.str!r})")
    return _name_of(dtype)


@lru_cache(maxsize=256)
def _name_of(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "O":
        raise Unfit("object arrays cannot be carried; give it a numeric or string dtype, or send a list")
    if dtype.names is not None:
        raise Unfit("structured arrays cannot be carried; send an array a field, {name: x[name] for name in x.dtype.names}")
    if dtype.kind == "T":
        raise Unfit("arrays of strings without a fixed width cannot be carried; send x.astype('U')")
    name = dtype.str if dtype.kind not in "fc" or not _is_wide(dtype) else f"{dtype.str}/{_PRECISION}"
    try:
        faithful = dtype_of(name) == dtype
    except ValueError:
        faithful = False
    if not faithful:
        bits = 8 * dtype.itemsize if dtype.itemsize in (1, 2, 4, 8) else 8
        raise Unfit(f"arrays of dtype {dtype.name} cannot be carried; send their bits, for instance x.view(np.uint{bits})")
    return name


def _is_wide(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == (_WIDE if dtype.kind == "f" else 2 * _WIDE) > (8 if dtype.kind == "f" else 16)


@lru_cache(maxsize=256)
def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of that name. Raises ``ValueError`` if it is not the name of one that is carried."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name[:40]!r} is not the name of a dtype that is carried")
    try:
        dtype = np.dtype(found["numpy"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r} is not a dtype here: {error}") from None
    if dtype.str != found["numpy"]:
        raise ValueError(f"{name!r} is not how the dtype {dtype.str!r} is named")
    if found["precision"] != (str(_PRECISION) if dtype.kind in "fc" and _is_wide(dtype) else None):
        raise ValueError(f"{name!r} does not fit the long double of this machine, which has a mantissa of {_PRECISION} bits")
    return dtype


def size_of(dtype: np.dtype[Any], shape: Sequence[int]) -> int:
    """Bytes of such an array. Raises ``ValueError`` where numpy could not address it."""
    if len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"an array of {len(shape)} dimensions; {MAX_DIMENSIONS} are the most")
    if any(side < 0 for side in shape):
        raise ValueError("an array with a negative side")
    if math.prod(side or 1 for side in shape) * dtype.itemsize > _ADDRESSABLE:
        raise ValueError("an array that is larger than anything that can be addressed")
    return math.prod(shape) * dtype.itemsize


def settled(array: Array) -> Array:
    """The same array, or a copy of it in C order if it lies in memory neither in C nor in Fortran order."""
    return array if array.flags.forc else array.copy(order="C")


def is_fortran(array: Array) -> bool:
    """Whether the array lies in Fortran order; where both orders are the same it counts as C."""
    return not array.flags.c_contiguous


def octets_of(array: Array) -> memoryview:
    """The memory of an array that lies in C or in Fortran order, as bytes; writable if the array is."""
    if array.size == 0:
        return memoryview(b"")
    row = array if array.flags.c_contiguous else array.T
    return row.reshape(-1).view(np.uint8).data


def new_array(dtype: np.dtype[Any], shape: Sequence[int], *, fortran: bool) -> Array:
    """An array to receive into. It owns its memory, so that it keeps nothing else alive. Raises ``MemoryError``."""
    return np.empty(tuple(shape), dtype, order="F" if fortran else "C")


def scalar_octets(value: np.generic) -> tuple[str, bytes]:
    """Name of the dtype and the bytes of a numpy scalar. Raises ``Unfit``."""
    if isinstance(value, np.bytes_):
        return "S", bytes(value)
    if isinstance(value, np.str_):
        return "U", str.encode(value)  # str(value) would drop zeros at its end
    return name_of(value.dtype), value.tobytes()


def scalar_of(name: str, octets: bytes) -> np.generic:
    """The numpy scalar again. Raises ``ValueError``. Strings have a width of their own, and may end in zeros, which arrays drop."""
    if name == "S":
        return np.bytes_(octets)
    if name == "U":
        return np.str_(octets.decode())
    dtype = dtype_of(name)
    if dtype.kind in "SU" or len(octets) != dtype.itemsize:
        raise ValueError(f"{len(octets)} bytes are not a scalar of dtype {name!r}")
    scalar: np.generic = np.frombuffer(octets, dtype)[0]
    return scalar
