"""Reading of `.npz` files: invalid contents are refused before memory is allocated for them."""

import contextlib
import os
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from waiting import within

from spiel_cfrplus._utils.archives import DamagedError, open_archive

MOST_BYTES = 5_000_000


@contextlib.contextmanager
def little_memory():
    """Fails if more than `MOST_BYTES` are allocated at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def npy(values):
    """The bytes of an array in a `.npy` file."""
    shape = "()" if np.ndim(values) == 0 else str(np.shape(values))
    return with_header(f"{{'descr': {np.asarray(values).dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}", values)


def with_header(text, values, version=b"\x01\x00"):
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text.encode() + np.asarray(values).tobytes()


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive, warnings.catch_warnings(action="ignore"):  # of a name twice
        for name, data in members:
            archive.writestr(name, data)
    return path


def read(path, name="numbers", dtype=np.float64, shape=(None,)):
    with open_archive(path) as archive:
        return archive.array(name, dtype, shape)


def test_archives_written_by_numpy_are_read(tmp_path):
    np.savez(
        tmp_path / "a.npz", numbers=np.arange(5.0), empty=np.zeros((0, 3), np.int32), text=np.array('{"a": [1, "\\u00e4"]}')
    )
    np.testing.assert_array_equal(read(tmp_path / "a.npz"), np.arange(5.0))
    assert read(tmp_path / "a.npz", "empty", np.int32, (None, 3)).shape == (0, 3)
    with open_archive(tmp_path / "a.npz") as archive:
        assert archive.names == {"numbers", "empty", "text"}
        assert archive.header("empty") == (np.int32, (0, 3))
        assert archive.json("text") == {"a": [1, "ä"]}
        archive.check_sums()


@pytest.mark.parametrize("shape", [(4,), (None, None), (), (5, 1)])
def test_unexpected_shapes_are_refused(shape, tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.arange(5.0)))])
    with pytest.raises(DamagedError, match=r"numbers is float64 of shape \(5,\), not float64 of shape "):
        read(path, shape=shape)


def test_unexpected_dtypes_are_refused(tmp_path):
    for dtype in (">f8", "<f4", "<i8", "<c16"):
        path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.ones(5, dtype)))])
        with pytest.raises(DamagedError, match=r"numbers is .* not float64"):
            read(path)


def test_compressed_arrays_are_refused_before_decompression(tmp_path):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**23},), }}"
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("numbers.npy", "w") as member:
        member.write(with_header(header, np.zeros(0)))
        for _ in range(16):
            member.write(bytes(2**22))
    assert path.stat().st_size < 2**17
    with little_memory(), pytest.raises(DamagedError, match="numbers is compressed"):
        read(path)


def test_a_large_sparse_array_is_refused_before_it_is_read(tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.zeros(10**6)))])
    with little_memory(), pytest.raises(DamagedError, match=r"numbers is float64 of shape \(1000000,\)"):
        read(path, shape=(26,))
    with little_memory(), open_archive(path) as archive, pytest.raises(DamagedError, match=r"numbers is float64 of shape"):
        archive.arrays_like({"numbers": np.zeros(26)})


def test_a_long_text_is_refused_before_it_is_read(tmp_path):
    np.savez(tmp_path / "a.npz", text=np.array("[" * 2_000_000))
    with little_memory(), open_archive(tmp_path / "a.npz") as archive, pytest.raises(DamagedError, match="not a text of up to"):
        archive.json("text")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "recursion"),
        ("[1, 2]", "not a JSON object"),
        ('{"a": 1, "a": 2}', "a duplicate key"),
        ('{"a": {"b": 1, "b": 1}}', "a duplicate key"),
        ('{"a": ' + "9" * 10_000 + "}", "digits"),
        ('{"a": "ä"}', "not an ASCII text"),
        ("no json", "Expecting value"),
        ("", "Expecting value|not a text|an array of"),
    ],
    ids=["deep", "list", "twice", "twice_within", "huge", "unicode", "text", "empty"],
)
def test_texts_that_are_not_json_objects_are_refused(text, words, tmp_path):
    np.savez(tmp_path / "a.npz", text=np.array(text))
    with pytest.raises(DamagedError, match=words), open_archive(tmp_path / "a.npz") as archive:
        archive.json("text")


def test_invalid_code_points_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", text=np.full(20, 0xFFFFFFFF, np.uint32).view("<U20").reshape(()))
    with pytest.raises(DamagedError, match="not an ASCII text"), open_archive(tmp_path / "a.npz") as archive:
        archive.json("text")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-5, -1), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2**62, 8), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (5,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 5, }",
        "{'descr': '<f8', 'shape': (5,), }",
        "[" * 100,
        "-" * 9_000 + "1",
        "no header",
        "",
    ],
    ids=lambda header: header[:60].replace(" ", ""),
)
def test_headers_that_do_not_match_the_data_are_refused(header, tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", with_header(header, np.arange(5.0)))])
    with little_memory(), pytest.raises(DamagedError):
        read(path)


def test_other_versions_of_the_npy_format_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", with_header("", np.arange(5.0), b"\x02\x00"))])
    with pytest.raises(DamagedError, match=r"unsupported version of the \.npy format"):
        read(path)


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.savez(tmp_path / "a.npz", numbers=np.array([Trap()]))
    with pytest.raises(DamagedError, match="an array of object"):
        read(tmp_path / "a.npz")
    assert not (tmp_path / "sprung").exists()


def test_many_members_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", [(f"{number}.npy", b"") for number in range(100)])
    with pytest.raises(DamagedError, match="100 members"):
        read(path)


def test_a_long_list_of_members_is_refused_before_it_is_read(tmp_path):
    path = write(tmp_path / "a.npz", [(f"{number:0100}.npy", b"") for number in range(10_000)])
    with little_memory(), pytest.raises(DamagedError, match="a single read of"):
        read(path)


def test_two_members_with_the_same_name_are_refused(tmp_path):
    for second in ("numbers.npy", "numbers"):
        path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.zeros(3))), (second, npy(np.ones(3)))])
        with pytest.raises(DamagedError, match="two members with the same name"):
            read(path)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", [(f"{name}.npy", npy(np.zeros(10_000))) for name in "ab"])
    data = path.read_bytes()
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    # The first member is said to be as long as the whole file.
    size = len(data).to_bytes(4, "little")
    first = data.index(b"PK\x01\x02")
    path.write_bytes(data[: first + 20] + 2 * size + data[first + 28 : second] + data[second:])
    with pytest.raises(DamagedError, match="members larger than the file"):
        read(path, "b")


def test_encrypted_members_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.zeros(3)))])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="compressed"):
        read(path)


def test_a_wrong_checksum_is_found_by_reading_in_small_pieces(tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.zeros(2 * 10**6)))])
    with open(path, "r+b") as file:
        file.seek(5 * 10**6)
        file.write(b"\x01")
    with little_memory(), pytest.raises(DamagedError, match=r"checksum of numbers\.npy"), open_archive(path) as archive:
        archive.check_sums()
    with pytest.raises(DamagedError, match="CRC"):
        read(path)


def test_files_that_are_not_regular_are_refused_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for path, words in [
        (tmp_path / "fifo", "not a regular file"),
        (tmp_path, "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (tmp_path / "loop", "a loop of links"),
    ]:
        with within(5), pytest.raises(DamagedError, match=words):
            read(path)
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (tmp_path / "dangling", tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError):
            read(path)


def test_reasons_are_on_one_short_line(tmp_path):
    assert str(DamagedError("two\nlines " + 1000 * "x ")).startswith("two lines x x")
    assert str(DamagedError(1000 * "x")) == 196 * "x" + " ..."
    assert str(DamagedError(200 * "x")) == 200 * "x"


def test_a_memory_error_is_not_reported_as_damage(tmp_path):
    path = write(tmp_path / "a.npz", [("numbers.npy", npy(np.zeros(3)))])
    with pytest.raises(MemoryError), open_archive(path):
        raise MemoryError
