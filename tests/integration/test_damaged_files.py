"""Checkpoints and cached walks with random damage are refused or replaced, and never read incorrectly."""

import random
import warnings
import zipfile

import numpy as np
import pyspiel
import pytest

from spiel_cfrplus import CFRPlusSolver, Solver, compile_game
from spiel_cfrplus.solving import checkpoint
from spiel_cfrplus.solving.curve import Curve, Row

KUHN = pyspiel.load_game("kuhn_poker")
CURVE = Curve((Row(1, 0.1, 0.9, 0.45, 0.0, None), Row(2, 0.2, 0.5, 0.25, 0.1, 0.3)), 0.25)
CASES_PER_KIND = 60
NOT_A_CHECKPOINT = "is not a checkpoint of spiel_cfrplus, or is damaged ("
NOT_A_WALK = "is not a walk cached by spiel_cfrplus, or is damaged ("
MADE_ANEW = "); the game is walked again"


def flip(data, generator):
    """Changes up to three bits."""
    damaged = bytearray(data)
    for _ in range(generator.randint(1, 3)):
        damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(damaged)


def delete(data, generator):
    start = generator.randrange(len(data))
    return data[:start] + data[start + generator.choice([1, 2, 7, 100]) :]


def insert(data, generator):
    start = generator.randrange(len(data) + 1)
    return data[:start] + generator.randbytes(generator.choice([1, 2, 7, 100])) + data[start:]


def truncate(data, generator):
    return data[: generator.randrange(len(data))]


def edit_header(data, generator):
    """Writes a random byte into the archive's list of members or into the header of a member."""
    signatures = (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY")
    starts = [at for at in range(len(data)) if data.startswith(signatures, at)]
    damaged = bytearray(data)
    at = min(generator.choice(starts) + generator.randrange(60), len(data) - 1)
    damaged[at] = generator.randrange(256)
    return bytes(damaged)


def swap(data, generator):
    """Swaps two pieces."""
    size = generator.choice([4, 30, 200])
    first, second = sorted(generator.sample(range(len(data) - size), 2))
    damaged = bytearray(data)
    damaged[first : first + size], damaged[second : second + size] = data[second : second + size], data[first : first + size]
    return bytes(damaged[: len(data)])


KINDS = [flip, delete, insert, truncate, edit_header, swap]


def damaged_copies(data, kind):
    generator = random.Random(kind.__name__)
    return [kind(data, generator) for _ in range(CASES_PER_KIND)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_checkpoint_is_refused_in_one_line(kind, tmp_path, kuhn):
    solver = CFRPlusSolver(kuhn)
    solver.run(20)
    path = tmp_path / "solver.npz"
    solver.save(path, CURVE)
    refused = 0
    for data in damaged_copies(path.read_bytes(), kind):
        path.write_bytes(data)
        message = refusal(path, solver)
        if message is not None:
            assert message.startswith(f"{path} {NOT_A_CHECKPOINT}")
            assert "\n" not in message
            refused += 1
    assert refused > CASES_PER_KIND / 2


def refusal(path, solver):
    """The reason why a checkpoint is refused; None if only irrelevant data such as dates were damaged."""
    try:
        loaded, curve = Solver.load(path, solver.game), checkpoint.read_curve(path)
    except ValueError as error:
        return str(error)
    for name, expected in solver.self_play.state_dict().items():
        np.testing.assert_array_equal(loaded.self_play.state_dict()[name], expected)
    assert curve == CURVE
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_walk_is_replaced_with_the_same_warning(kind, tmp_path, kuhn):
    compile_game(KUHN, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    good, noticed = contents(path), 0
    for data in damaged_copies(path.read_bytes(), kind):
        path.write_bytes(data)
        noticed += check_read(KUHN, path, kuhn)
        assert contents(path) == good
    assert noticed > CASES_PER_KIND / 2


def contents(path):
    """The contents of the members; the archives differ in their dates."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_read(game, path, expected):
    """Whether a warning says that the file at `path` is damaged; checks that the game is the expected one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = compile_game(game, cache=path.parent)
    messages = [str(warning.message) for warning in caught]
    for message in messages:
        assert message.startswith(f"{path} {NOT_A_WALK}")
        assert message.endswith(MADE_ANEW)
        assert "\n" not in message
    assert len(messages) <= 1
    assert compiled.fingerprint == expected.fingerprint
    return len(messages)
