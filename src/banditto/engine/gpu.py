"""The same policies on a GPU: CuPy arrays, coins looked up there, rewards drawn there.

Coins are the CPU's, word for word. Binomial rewards come from our own kernel, which takes the same steps as the CPU's
sampler at the same places; CuPy's generator cannot be used for them, because its binomial multiplies distances from the
mode as 32-bit integers, which overflow before counts do. With CuPy 14.2 the variance was right at n = 10^6 and 1.17
times the true one at n = 2^31 - 1, p = 0.45; nothing between was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise, check_arms
from banditto.core.arrays import FloatArray, IntArray, WordArray, changed, register_namespace
from banditto.core.errors import InvalidArgument
from banditto.policies.policy import BatchedPolicy

INSTALL = "pip install 'banditto[gpu]', or CuPy's package for your version of CUDA"
_THREADS = 256
_BLOCKS = 132 * 16  # of threads that draw: enough for the largest cards, each with many draws to make
_REDUCED = {"float64": ("max", "min", "sum"), "int64": ("max", "min", "sum"), "bool": ("any", "all")}


class Device:
    """One GPU: CuPy's arrays with the array standard's names, and our kernels."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        source = resources.files("banditto.engine").joinpath("kernels.cu").read_text(encoding="utf-8")
        self._module = cupy.RawModule(code=source, options=("--std=c++14", "--fmad=false"))
        self.arrays: Any = _Standard(self)
        register_namespace(cupy.ndarray, self.arrays)

    def start(self, policy: BatchedPolicy[Any], replicates: int) -> Any:
        """Return the state before the first batch; all replicates begin alike, so one of them is shown as many."""

        def repeated(array: Any) -> Any:
            return self.cupy.broadcast_to(self.cupy.asarray(array), (replicates, *array.shape[1:]))

        return changed(policy.init(1), repeated)

    def coins(self, seed: int, start: int, count: int) -> Coins:
        """Return coins in CuPy arrays."""
        return _DeviceCoins(seed, start, count)

    def noise(self, seed: int, side: int, block: int) -> Noise:
        """Return noise that draws rewards in CuPy arrays."""
        return _DeviceNoise(self, seed, side, block)

    def host(self, array: Any) -> Any:
        """Return an array of the GPU as a NumPy array."""
        return self.cupy.asnumpy(array)

    def launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Run the kernel `name` with at least `threads` threads."""
        self._module.get_function(name)((-(-threads // _THREADS),), (_THREADS,), arguments)

    def steps(self, array: Any) -> tuple[int, int]:
        """Return the strides in elements: from one replicate to the next, and from one arm to the next."""
        rows, arms = array.strides
        return rows // array.itemsize, arms // array.itemsize


@lru_cache(maxsize=1)
def device() -> Device:
    """Return the GPU; an error says in one line what is missing."""
    try:
        cupy = import_module("cupy")
    except ImportError:
        raise InvalidArgument("backend", "cupy", f"numpy, or CuPy installed: {INSTALL}") from None
    try:
        found = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InvalidArgument("backend", "cupy", f"numpy, or a GPU that CuPy can use ({error})") from None
    if not found:
        raise InvalidArgument("backend", "cupy", "numpy, or a machine with a GPU")
    return Device(cupy)


class _Standard:
    """CuPy under the names of the array standard, with reductions over few arms by kernels of our own.

    CuPy's reductions give every replicate a group of threads, which wait for most of their time.
    """

    def __init__(self, place: Device) -> None:
        self._place, self._cupy = place, place.cupy
        self.bool = place.cupy.bool_

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cupy, name)

    def astype(self, array: Any, dtype: Any) -> Any:
        """Return the array in another type."""
        return array.astype(dtype, copy=False)

    def within(self, values: Any, cut: Any) -> Any:
        """Return a mask of the entries that lie at most `cut` below the largest of their row."""
        rows, arms = values.shape
        found = self._cupy.empty((rows, arms), dtype=self.bool)
        cuts = self._cupy.broadcast_to(self._cupy.asarray(cut, dtype=self._cupy.float64), (rows, 1))
        steps = *self._place.steps(values), self._place.steps(cuts)[0]
        self._place.launch("within", rows, values, *steps[:2], cuts, steps[2], rows, arms, found)
        return found

    def times(self, mask: Any, number: int) -> Any:
        """Return `number` where a mask is true, else 0; arm-major, so that neighbouring threads read neighbours."""
        plan = self._cupy.empty(mask.shape[::-1], dtype=self._cupy.int64).T
        return self._cupy.multiply(mask, number, out=plan)

    def counted(self, mask: Any) -> Any:
        """Return how many entries of each row are true; shape (R, 1)."""
        rows, arms = mask.shape
        found = self._cupy.empty((rows, 1), dtype=self._cupy.int64)
        self._place.launch("count_bool", rows, mask, *self._place.steps(mask), rows, arms, found)
        return found

    def concat(self, arrays: Sequence[Any], axis: int = 0) -> Any:
        """Join arrays along an axis."""
        return self._cupy.concatenate(arrays, axis=axis)

    def unique_counts(self, array: Any) -> Any:
        """Return distinct values and how often each occurs."""
        return self._cupy.unique(array, return_counts=True)

    def max(self, array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return the largest entry along an axis."""
        return self._reduced("max", array, axis, keepdims)

    def min(self, array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return the smallest entry along an axis."""
        return self._reduced("min", array, axis, keepdims)

    def sum(self, array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return the sum along an axis."""
        return self._reduced("sum", array, axis, keepdims)

    def any(self, array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return whether some entry along an axis is true."""
        return self._reduced("any", array, axis, keepdims)

    def all(self, array: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        """Return whether all entries along an axis are true."""
        return self._reduced("all", array, axis, keepdims)

    def _reduced(self, name: str, array: Any, axis: int | None, keepdims: bool) -> Any:
        """Return a reduction along an axis: by our kernel over the few arms of each replicate, else by CuPy."""
        known = array.ndim == 2 and name in _REDUCED.get(array.dtype.name, ())
        if known and axis is None and not keepdims:
            array, axis, known = self._reduced(name, array, 1, False), None, False  # row by row first
        if not known or axis not in (-1, 1):
            return getattr(self._cupy, name)(array, axis=axis, keepdims=keepdims)
        rows, arms = array.shape
        out = self._cupy.empty((rows, 1) if keepdims else rows, dtype=array.dtype)
        self._place.launch(f"{name}_{array.dtype.name}", rows, array, *self._place.steps(array), rows, arms, out)
        return out


class _DeviceCoins(Coins):
    """The same coins as on the CPU, looked up on the GPU."""

    def words(self, purpose: str, batch: int, arm: int = 0) -> WordArray:
        """Return 64 random bits for each replicate, shape (R,)."""
        words: WordArray = device().cupy.asarray(super().words(purpose, batch, arm))
        return words

    def uniform(self, purpose: str, batch: int, arm: int = 0) -> FloatArray:
        """Return a uniform number in [0, 1) for each replicate, shape (R, 1)."""
        place = device()
        key = self.key(purpose, batch, arm)
        values = place.cupy.empty((self.count, 1))
        halves = np.uint64(key & 0xFFFF_FFFF_FFFF_FFFF), np.uint64(key >> 64)
        place.launch("coins", self.count // 4 + 2, *halves, np.uint64(self.start), np.uint64(self.count), values)
        found: FloatArray = values if self.rows is None else values[self.rows]
        return found


class _DeviceNoise(Noise):
    """Noise whose rewards are drawn on the GPU, from the same places of the stream as on the CPU."""

    __slots__ = ("_device",)

    def __init__(self, place: Device, seed: int, side: int, block: int) -> None:
        super().__init__(seed, side, block)
        self._device = place

    def binomial_totals(self, pulls: IntArray, means: Sequence[float]) -> FloatArray:
        """Return a draw of Binomial(pulls, mean) for each (replicate, arm)."""
        check_arms(pulls, len(means))
        return self._drawn("binomial_totals", pulls, self._device.cupy.asarray(means), False)

    def normal_totals(self, pulls: IntArray, means: Sequence[float], sigma: float) -> FloatArray:
        """Return a draw of Normal(pulls mean, pulls sigma^2) for each (replicate, arm)."""
        check_arms(pulls, len(means))
        return self._drawn("normal_totals", pulls, self._device.cupy.asarray(means), sigma)

    def discrete_totals(
        self, pulls: IntArray, values: Sequence[Sequence[float]], probabilities: Sequence[Sequence[float]]
    ) -> FloatArray:
        """Return totals (replicate, arm) of discrete rewards: values times multinomial counts, in fixed order."""
        check_arms(pulls, len(values))
        totals: FloatArray = self._device.cupy.zeros(pulls.shape[::-1])
        for arm, own in enumerate(values):
            counts = self.multinomial_of(pulls[:, arm], probabilities[arm])
            for value, count in zip(own, counts, strict=True):
                totals[arm] += value * count
        return totals.T

    def binomials(self, counts: IntArray, probability: float | FloatArray) -> IntArray:
        """Return a draw of Binomial(count, probability) for each count (R,)."""
        means = self._device.cupy.broadcast_to(self._device.cupy.asarray(probability), counts.shape)
        drawn = self._drawn("binomial_totals", counts[:, None], self._device.cupy.ascontiguousarray(means), True)
        return drawn[:, 0].astype(np.int64)

    def _drawn(self, kernel: str, pulls: Any, means: Any, option: Any) -> FloatArray:
        """Return totals (R, K), arm-major, that a kernel draws."""
        place = self._device
        rows, arms = pulls.shape
        totals = place.cupy.empty((arms, rows))
        known = self._numbers is not None and option is not True  # draws for each element have no replicates
        whole = self._whole if known else rows
        first = self._places(whole * arms)
        threads = min(rows * arms, _THREADS * _BLOCKS)
        which = (self._numbers, whole) if known else (np.uintp(0), whole)  # a null pointer: all of them
        place.launch(
            *(kernel, threads, pulls, *place.steps(pulls), means, option, rows, arms),
            *(*self._keys, first, *which, totals),
        )
        drawn: FloatArray = totals.T
        return drawn
