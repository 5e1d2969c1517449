"""What the tests of scenes and point clouds share: labels, and files that are damaged."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from perpend.exceptions import InputError
from perpend.formats import Dataset, Labelled, read

QUICK = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
NUMBERS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]


def some_labels(dataset, seed=0):
    """Labels and distances that differ from row to row."""
    rng = np.random.default_rng(seed)
    n = len(dataset.X)
    labels = rng.choice([-1, 1], n)
    return Labelled(labels, rng.uniform(0, 2, n), rng.uniform(0, 1, n))


def in_records(dataset, values, missing):
    """What a plain loop would put at the place of each record."""
    full = [missing] * int(np.prod(dataset.shape))
    places = range(len(values)) if dataset.positions is None else dataset.positions
    for place, value in zip(places, values, strict=True):
        full[place] = value
    return np.array(full)


def survives(path, **kwargs):
    """A damaged file is read or refused; anything else raises."""
    try:
        dataset = read(path, **kwargs)
    except InputError:
        return None
    assert isinstance(dataset, Dataset)
    assert dataset.X.ndim == 2
    assert dataset.X.dtype in (np.float32, np.float64)
    rows = int(np.prod(dataset.shape)) if dataset.positions is None else len(dataset.positions)
    assert len(dataset.X) == rows
    return dataset


def damage(good, rng, focus):
    """Return the bytes of a file with something wrong, mostly among the first `focus`."""
    data = bytearray(good)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        reach = min(len(data), focus) if rng.random() < 0.8 else len(data)
        place = int(rng.integers(0, max(1, reach)))
        match int(rng.integers(0, 7)):
            case 0 if data:
                data[place] ^= 1 << int(rng.integers(0, 8))
            case 1 if data:
                data[place] = int(rng.integers(0, 256))
            case 2:
                del data[place:]
            case 3:
                del data[place : place + int(rng.integers(1, 20))]
            case 4:
                data[place:place] = rng.bytes(int(rng.integers(1, 20)))
            case 5:
                width = int(rng.choice([1, 2, 4, 8]))
                number = NUMBERS[int(rng.integers(0, len(NUMBERS)))] % 256**width
                data[place : place + width] = number.to_bytes(width, "little")
            case 6:
                digits = [i for i in range(min(len(data), focus)) if 48 <= data[i] <= 57]
                if digits:
                    at = digits[int(rng.integers(0, len(digits)))]
                    text = rng.choice(["0", "-1", "99999999999", "1e9", "nan", "", "4294967296"])
                    data[at : at + 1] = str(text).encode()
    return bytes(data)


SEEDS = st.integers(0, 2**32 - 1)
