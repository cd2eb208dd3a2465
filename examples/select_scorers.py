"""Which of four functions reads reviews best? Each pull is a fresh review; prompts are raced in the same way."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import banditto as bd

GOOD, BAD, PLAIN = ("lovely", "great", "warm"), ("awful", "cold", "dull"), ("the", "soup", "room", "staff", "was")


def review(rng: np.random.Generator) -> tuple[list[str], bool]:
    """A review of twelve words, and whether its writer was pleased: a quarter of them say so, a tenth the opposite."""
    pleased = bool(rng.random() < 0.5)
    true, false = (GOOD, BAD) if pleased else (BAD, GOOD)
    return [str(rng.choice((true, PLAIN, false)[rng.choice(3, p=(0.25, 0.65, 0.1))])) for _ in range(12)], pleased


class Judged(NamedTuple):
    reader: Callable[[list[str]], bool]

    def __call__(self, rng: np.random.Generator) -> bool:
        words, pleased = review(rng)
        return self.reader(words) == pleased


def main() -> None:
    arms = {
        "first word": Judged(lambda words: words[0] in GOOD),
        "praise": Judged(lambda words: any(word in GOOD for word in words)),
        "no blame": Judged(lambda words: not any(word in BAD for word in words)),
        "balance": Judged(lambda words: sum((word in GOOD) - (word in BAD) for word in words) > 0),
    }
    print(bd.select(arms, gap=0.1, rho=0.2).table())


if __name__ == "__main__":
    main()
