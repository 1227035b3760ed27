"""Digests of users' functions: every edit changes the digest, and unchanged functions are loaded from the cache."""

import importlib
import itertools
import linecache
import logging
import sys

import numba
import numpy as np
import pytest
from compiled_kernels import files_in, hits, renewed

from spiel_cfrplus.kernels import kernel_cache, passes, regret_matching, rule_sources, self_play
from spiel_cfrplus.kernels.rule_sources import UnknownFunctionError, function_digest

RULES = """
import enum
import math
from typing import NamedTuple
import numba
import numpy as np
import rule_constants
from spiel_cfrplus.kernels import passes

SCALE = 2.0
NUMBERS = (1.0, np.float64(3.0), "text", numba.float64)
TABLE = np.array([5.0, 7.0])
LARGE = np.zeros(200_000)
ENTRIES = [1.0]

class Pair(NamedTuple):
    a: float
    b: float

class Kind(enum.IntEnum):
    FIRST = 1

@numba.njit
def inner(x):
    return SCALE * x

@numba.njit
def outer(x, power=1.0):
    return inner(x) ** power if x < 9.0 else outer(x - 1.0)

def plain(x):
    return x

@numba.vectorize
def vectorized(x):
    return x

@numba.njit
def rule(treeplexes, player, values, policy, memory, parameters, t):
    policy[0] = outer(values[0]) + NUMBERS[0] + TABLE[1] + Pair(1.0, 13.0).b
    policy[0] += rule_constants.OFFSET + rule_constants.shift(values[0]) + max(0.0, math.floor(np.sin(0.0)))
"""
CONSTANTS = """
import numba
OFFSET = 11.0
@numba.njit
def shift(x):
    return 17.0 + x
"""
RESULT = 2 + 1 + 7 + 13 + 11 + 18


@pytest.fixture
def new_process(tmp_path, monkeypatch):
    """A function that imports the rules as in a new process, after edits (pairs of texts), and returns the module."""
    folders = (tmp_path / str(number) for number in itertools.count())

    def load(*edits):
        folder = next(folders)
        folder.mkdir()
        for name, text in (("rule_constants", CONSTANTS), ("my_rules", RULES)):
            for old, new in edits:
                text = text.replace(old, new)
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
            monkeypatch.delitem(sys.modules, name, raising=False)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(folder)
            return importlib.import_module("my_rules")

    yield load
    for name in ("rule_constants", "my_rules"):
        sys.modules.pop(name, None)


@pytest.fixture
def reported(caplog):
    """The messages about rules that cannot be cached."""
    kernel_cache._report_recompilation.cache_clear()
    yield lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    kernel_cache._report_recompilation.cache_clear()


def played(rule):
    """The result of a kernel that receives the rule, and the number of times that it was loaded, as in a new process."""
    kernel, policy = renewed(self_play.update_by_treeplex_rule), np.zeros(1)
    kernel(None, 0, np.ones(1), policy, rule, None, None, 1, False)
    return policy[0], hits(kernel)


EDITS = {
    "the rule": ("outer(values[0]) +", "2.0 * outer(values[0]) +"),
    "what it calls": ("return SCALE * x", "return SCALE * x + 1.0"),
    "a constant of what it calls": ("SCALE = 2.0", "SCALE = 4.0"),
    "the type of a constant": ("SCALE = 2.0", "SCALE = 2"),
    "a constant in a tuple": ("NUMBERS = (1.0", "NUMBERS = (2.0"),
    "another type in a tuple": ("numba.float64)", "numba.float32)"),
    "an array": ("7.0", "8.0"),
    "the layout of an array": ("np.array([5.0, 7.0])", "np.array([[5.0, 0.0], [7.0, 0.0]])[:, 0]"),
    "a default value": ("power=1.0", "power=2.0"),
    "the fields of a class": ("    a: float\n    b: float", "    b: float\n    a: float"),
    "an option": ("@numba.njit\ndef inner", "@numba.njit(fastmath=True)\ndef inner"),
    "a constant of a module": ("OFFSET = 11.0", "OFFSET = 12.0"),
    "a function of a module": ("return 17.0 + x", "return 18.0 + x"),
    "a built-in function": ("SCALE = 2.0", "SCALE = 2.0\nmax = passes.normalize"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_digest(edit, new_process):
    before = function_digest(new_process().rule)
    assert function_digest(new_process(EDITS[edit]).rule) != before
    assert function_digest(new_process().rule) == before


def test_edits_elsewhere_do_not_change_the_digest(new_process):
    before = function_digest(new_process().rule)
    for edit in (
        ("class Kind", "# A comment\n\nclass Kind"),
        ("def plain", "def plainer"),
        ("ENTRIES = [1.0]", "ENTRIES = []"),
    ):
        assert function_digest(new_process(edit).rule) == before


def test_a_rule_of_a_module_is_compiled_once_and_after_edits(cache, new_process, reported):
    assert played(new_process().rule) == (RESULT, 0)
    assert played(new_process().rule) == (RESULT, 1)
    for edit, difference in (
        ("the rule", 2),
        ("what it calls", 1),
        ("a function of a module", 1),
        ("a constant of a module", 1),
    ):
        assert played(new_process(EDITS[edit]).rule) == (RESULT + difference, 0)
    assert played(new_process().rule) == (RESULT, 1)
    assert played(new_process(EDITS["the rule"]).rule) == (RESULT + 2, 1)
    assert reported() == []


def test_loading_imports_no_module_of_the_rule(cache, new_process):
    edit = ("policy[0] +=", "if t > 99:\n        raise ValueError('late')\n    print(player)\n    policy[0] +=")
    assert played(new_process(edit).rule) == (RESULT, 0)
    rule = new_process(edit).rule
    for name in ("rule_constants", "my_rules"):  # whose folder is not in sys.path any more
        del sys.modules[name]
    assert played(rule) == (RESULT, 1)
    assert "my_rules" not in sys.modules


def test_rules_of_one_name_that_a_function_makes(cache):
    def make(factor):
        @numba.njit
        def rule(treeplexes, player, values, policy, memory, parameters, t):
            policy[0] = factor * values[0]

        return rule

    assert [played(make(factor)) for factor in (2.0, 3.0, 2.0, 3.0, 2)] == [(2.0, 0), (3.0, 0), (2.0, 1), (3.0, 1), (2.0, 0)]


def test_a_rule_in_a_cell_of_a_notebook(cache, monkeypatch, reported):
    """Only `linecache` has its source, and its module cannot be imported."""
    cell = """
import numba
@numba.njit
def rule(treeplexes, player, values, policy, memory, parameters, t):
    policy[0] = 2.0 * values[0]
"""

    def run_cell(number, source):
        name = f"<ipython-input-{number}>"
        monkeypatch.setitem(linecache.cache, name, (len(source), None, source.splitlines(True), name))
        variables = {"__name__": "no_module_of_this_name"}
        exec(compile(source, name, "exec"), variables)
        return variables["rule"]

    assert played(run_cell(1, cell)) == (2.0, 0)
    assert played(run_cell(2, cell)) == (2.0, 1)
    assert played(run_cell(3, cell.replace("2.0", "3.0"))) == (3.0, 0)
    assert reported() == []


def test_functions_of_kernel_files_are_identified_by_their_names(new_process):
    name = "spiel_cfrplus.kernels.regret_matching.regret_matching"
    assert function_digest(regret_matching.regret_matching) == name
    assert function_digest(renewed(regret_matching.regret_matching)) == name
    rule = new_process(("max(0.0, ", "max(0.0, passes.mean_utility(values, values, 0, 0) + ")).rule
    assert "spiel_cfrplus.kernels.passes.mean_utility" in rule_sources._content_when_compiled(rule).text


UNKNOWN = {
    "a list": ("outer(values[0])", "len(ENTRIES) + outer(values[0])", "refers to ENTRIES, a list"),
    "a large array": ("outer(values[0])", "LARGE[0] + outer(values[0])", "refers to LARGE, an array of 1600000 bytes"),
    "a module": ("outer(values[0])", "(rule_constants, outer(values[0]))[1]", "refers to rule_constants, a module"),
    "no attribute": ("outer(values[0])", "rule_constants.absent", "refers to rule_constants.absent, which does not exist"),
    "a plain function": ("outer(values[0])", "plain(values[0])", "refers to plain, a function"),
    "a universal function": ("outer(values[0])", "vectorized(values[0])", "refers to vectorized, a DUFunc"),
    "an enumeration": ("outer(values[0])", "Kind.FIRST", "refers to Kind, a EnumType"),
    "given types": ("@numba.njit\ndef inner", "@numba.njit('f8(f8)')\ndef inner", "my_rules.inner has a fixed signature"),
    "types of variables": (
        "@numba.njit\ndef inner",
        "@numba.njit(locals={'x': numba.float32})\ndef inner",
        "types of variables",
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_cannot_be_identified(kind, new_process):
    old, new, reason = UNKNOWN[kind]
    rule = new_process((old, new)).rule
    with pytest.raises(UnknownFunctionError, match=reason):
        function_digest(rule)


def test_a_variable_without_a_value_cannot_be_identified():
    @numba.njit
    def rule(x):
        return x * factor

    with pytest.raises(UnknownFunctionError, match="refers to factor, which has no value"):
        function_digest(rule)
    factor = 2.0
    assert function_digest(rule)


def test_variables_of_nested_functions_belong_to_the_rule():
    def make(factor, other=passes.normalize):
        @numba.njit
        def rule(x):
            shift = 1.0

            def inner(y):
                return y * factor + shift

            return inner(x) * (2.0 if other is None else 1.0)

        return rule

    assert function_digest(make(2.0)) == function_digest(make(2.0))
    assert len({function_digest(make(2.0)), function_digest(make(3.0)), function_digest(make(2.0, None))}) == 3


def test_a_rule_without_source_is_compiled_at_every_start_with_one_message(cache, reported):
    source = """
import numba
@numba.njit
def rule(treeplexes, player, values, policy, memory, parameters, t):
    policy[0] = 2.0 * values[0]
"""
    for _ in range(2):
        variables = {"__name__": "typed_at_a_prompt"}
        exec(source, variables)
        assert played(variables["rule"]) == (2.0, 0)
    (line,) = reported()
    assert line == "spiel_cfrplus cannot cache a rule and compiles it at every start: typed_at_a_prompt.rule has no source"
    assert files_in(cache) == []


def test_code_is_not_cached_if_a_constant_changed_after_compilation(cache, new_process, reported):
    """Numba reads a constant when it compiles a function. The called function was compiled with the old value."""
    rules = new_process()
    assert played(rules.rule) == (RESULT, 0)
    rules.SCALE = 4.0
    assert played(rules.rule) == (RESULT, 0)
    (line,) = reported()
    assert "variables of my_rules.inner may have changed since it was compiled" in line
    rules.SCALE = 2.0  # another function may have been compiled in between
    assert played(rules.rule) == (RESULT, 0)
    assert played(new_process(("SCALE = 2.0", "SCALE = 4.0")).rule) == (RESULT + 2, 0)


def test_code_is_not_cached_if_a_called_function_was_compiled_before(cache, new_process, reported):
    rules = new_process()
    assert rules.rule_constants.shift(1.0) == 18.0  # refers to nothing
    assert played(rules.rule) == (RESULT, 0)
    assert played(new_process().rule) == (RESULT, 1)
    rules = new_process()
    assert rules.inner(1.0) == 2.0
    assert played(rules.rule) == (RESULT, 0)
    (line,) = reported()
    assert "variables of my_rules.inner may have changed" in line
