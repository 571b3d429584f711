"""What the histograms' declarations refuse alike: a confidence or a whole number out of range."""

from __future__ import annotations

from sluicegate.errors import ConfigurationError

MOST_CONFIDENT = 1.0 - 1e-9


def check_confidence(name: str, confidence: object) -> None:
    """Raise ConfigurationError unless 0 < confidence ≤ 1 − 10⁻⁹; NaN is refused too."""
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not (number and 0.0 < confidence <= MOST_CONFIDENT):  # type: ignore[operator]
        raise ConfigurationError(
            f"{name}(confidence={confidence!r}): expected a probability between 0 and 1, such as 0.95"
        )


def check_whole(name: str, key: str, value: object, least: int, most: int) -> None:
    """Raise ConfigurationError unless the value is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{name}({key}={value!r}): expected a whole number from {least} to {most}")
