"""Text of numbers, beside Python's own formatting."""

import gzip
import math

import numpy as np
import pytest

from popdesic.core.number_text_cpu import (
    gzip_member,
    integer_fields,
    join_fields,
    matrix_text,
    number_fields,
    string_fields,
    write_matrix,
)

SPECIAL = [0.0, -0.0, 1, 10, 100, 1e5, 1e8, 1e9, 999999999.5, 9999999995, 0.1, 1e-4, 1e-5]
SPECIAL += [9.9999999996e-5, 123456789, 1234567895, 0.00012345678950, 2.5, 1e15, 1e22, 5e-324]
SPECIAL += [999.9999999999999, 1e300, math.inf, -math.inf, math.nan, 0.5, 1.5, 1e-300, -7e-10]


def drawn(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    wide = rng.normal(size=20_000) * 10.0 ** rng.integers(-14, 24, 20_000)
    halves = rng.integers(0, 10**7, 20_000) / 2.0 ** rng.integers(0, 24, 20_000)
    decimal = np.round(rng.random(20_000) * 100, 6)
    return np.concatenate([SPECIAL, wide, halves, decimal])


@pytest.mark.parametrize("digits", [1, 2, 6, 9, 12])
def test_numbers_are_written_as_python_does(digits):
    values = drawn(digits)
    found = join_fields([number_fields(values, digits)]).decode().split("\n")
    assert found == [f"{x:.{digits}g}" for x in values] + [""]


def test_few_numbers_are_left_to_python():
    """Otherwise the compiled writer could be broken without anybody noticing."""
    fields = number_fields(np.random.default_rng(1).random(50_000) * 300, 9)
    assert (fields.length > 0).all()
    from popdesic.core import number_text_cpu as module

    text, length = np.empty((50_000, 17), np.uint8), np.zeros(50_000, np.int64)
    values = np.random.default_rng(2).random(50_000) * 300
    module.write_numbers(values, 9, module._POWERS, text, length)
    assert (length == 0).mean() < 0.01


def test_integers():
    values = np.array([0, -1, 5, 10, 99, 100, 2**63 - 1, -(2**63), 10**18, 10**18 - 1])
    assert join_fields([integer_fields(values)]).decode().split() == [str(x) for x in values]


def test_columns_of_a_table():
    names = string_fields(["a", "größer", ""])
    which = np.array([2, 1, 1, 0])
    fields = [names.at(which), integer_fields(which), number_fields(which / 3, 3)]
    assert join_fields(fields).decode() == (
        "\t2\t0.667\ngrößer\t1\t0.333\ngrößer\t1\t0.333\na\t0\t0\n"
    )


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 1), (0, 4)])
def test_a_matrix(shape):
    matrix = np.random.default_rng(3).normal(size=shape)
    expected = "".join("\t".join(f"{x:.9g}" for x in row) + "\n" for row in matrix)
    assert matrix_text(matrix, 9).decode() == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_a_matrix_in_blocks(threads, tmp_path, monkeypatch):
    monkeypatch.setattr("popdesic.core.number_text_cpu.BLOCK_NUMBERS", 20)
    matrix = np.random.default_rng(4).normal(size=(31, 7))
    write_matrix(tmp_path / "m.txt", matrix, threads)
    assert (tmp_path / "m.txt").read_bytes() == matrix_text(matrix, 9)
    write_matrix(tmp_path / "m.gz", matrix, threads)
    assert gzip.decompress((tmp_path / "m.gz").read_bytes()) == matrix_text(matrix, 9)


def test_members_have_no_date():
    assert gzip_member(b"x" * 100)[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
