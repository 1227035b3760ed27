"""The explorer: its data against the table of the profile, hostile texts, and the page in a browser."""

import base64
import json
import re
import zlib

import games
import numpy as np
import pytest
import reference
from browser import browser, errors, opened
from games import GAMES, End, Turn

from spiel_cfrplus import StrategyProfile, compile_game, expected_values, infostate_table, write_explorer
from spiel_cfrplus.display import explorer
from spiel_cfrplus.solving.curve import Row

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    '<img src="x" onerror="window.hacked = 1">',
    "'\"`${window.hacked = 1}\\ {{arrays}} <!-- &amp; \u2028\n\ttwo lines",
    "long " * 2000,
]
ROWS = {"cfr+": [Row(1, 0.1, 0.5, 0.25, 0.0, None), Row(10, 0.2, 0.05, 0.025, 0.0, None)]}


def random_profile(name):
    game = compile_game(GAMES[name]())
    return StrategyProfile(game, reference.random_probabilities(game, seed=5))


def hostile_profile():
    node = End([1.0, -1.0])
    for number, text in enumerate(HOSTILE):
        node = Turn(number % 2, text, {0: End([0.0, 0.0]), 1: node})
    return StrategyProfile.uniform(compile_game(games.python_game("test_hostile", node)))


def read(path):
    """The header and the arrays of a page."""
    text = path.read_text(encoding="utf-8")
    header = json.loads(re.search(r'<script id="header" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    packed = re.search(r'<script id="arrays" type="text/plain">(.*?)</script>', text, re.DOTALL)[1]
    block = zlib.decompress(base64.b64decode(packed, validate=True))
    arrays = {
        name: np.frombuffer(block, np.dtype(kind).newbyteorder("<"), length, start)
        for name, (kind, start, length) in header["arrays"].items()
    }
    return header, arrays, json.loads(arrays["texts"].tobytes())


def test_the_numbers_are_those_of_the_table(tmp_path):
    profile, path = random_profile("leduc_poker"), tmp_path / "leduc.html"
    write_explorer(profile, path, other=StrategyProfile.uniform(profile.game), rows=ROWS)
    header, arrays, (infostates, names, labels) = read(path)
    assert header["game"] == "leduc_poker()"
    assert header["rows"] == {"cfr+": [[1, 0.5], [10, 0.05]]}
    for number, own in enumerate([profile, StrategyProfile.uniform(profile.game)]):
        table = infostate_table(own)
        of_infostate = np.repeat(np.arange(len(infostates)), np.diff(arrays["row_start"]))
        assert [infostates[i] for i in of_infostate] == table["infostate"].tolist()
        assert arrays["infostate_player"][of_infostate].tolist() == table["player"].tolist()
        assert [names[name] for name in arrays["row_name"]] == table["action_name"].tolist()
        for column in ("probability", "expected_value", "regret"):
            np.testing.assert_array_equal(arrays[f"{column}{number}"], table[column].astype(np.float32))
        for column in ("own_reach", "counterfactual_reach"):
            np.testing.assert_array_equal(arrays[f"{column}{number}"][of_infostate], table[column].astype(np.float32))
        assert arrays[f"situation_value{number}"][:2] == pytest.approx(expected_values(own.game, own), abs=1e-6)
        reach, start = arrays[f"situation_reach{number}"], arrays["situation_child_start"]
        for situation in np.flatnonzero(np.diff(start)).tolist():
            assert reach[slice(*start[situation : situation + 2])].sum() == pytest.approx(reach[situation], rel=1e-5)
    assert max(arrays["situation_label"]) < len(labels)
    assert set(arrays["situation_infostates"].tolist()) == set(range(len(infostates)))


def test_hostile_texts_are_not_part_of_the_page(tmp_path):
    path = tmp_path / "hostile.html"
    write_explorer(hostile_profile(), path, names=(HOSTILE[0], ""), rows={HOSTILE[1]: ROWS["cfr+"]})
    text = path.read_text(encoding="utf-8")
    assert "hacked" not in re.sub(r'<script id="header".*?</script>', "", text, flags=re.DOTALL)
    assert text.count("<script") == 3
    header, _, (infostates, _, _) = read(path)
    assert set(infostates) == set(HOSTILE)
    assert header["profiles"][0]["name"] == HOSTILE[0]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|\beval\b", text)


def test_what_cannot_be_shown_is_refused(tmp_path, monkeypatch):
    profile = random_profile("kuhn_poker")
    with pytest.raises(ValueError, match=r"must end in \.html"):
        write_explorer(profile, tmp_path / "page.txt")
    with pytest.raises(ValueError, match="different games"):
        write_explorer(profile, tmp_path / "page.html", other=random_profile("leduc_poker"))
    with pytest.raises(TypeError, match="expected a StrategyProfile"):
        write_explorer(profile.to_dict(), tmp_path / "page.html")
    monkeypatch.setattr(explorer, "MOST_BYTES", 20_000)
    with pytest.raises(ValueError, match=r"would have \d+ bytes, the limit is 20000"):
        write_explorer(profile, tmp_path / "page.html")
    monkeypatch.setattr(explorer, "MOST_INFOSTATES", 11)
    with pytest.raises(ValueError, match="has 12 infostates, an explorer shows at most 11"):
        write_explorer(profile, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


# In a browser.

CLICK_AT_RANDOM = """
let state = 7;
const random = (n) => { state = (state * 48271) % 2147483647; return state % n; };
let longest = 0;
for (let click = 0; click < 60; click++) {
  const buttons = [...document.querySelectorAll("button:not(:disabled)")];
  const before = performance.now();
  buttons[random(buttons.length)].click();
  document.body.offsetHeight;
  longest = Math.max(longest, performance.now() - before);
}
return longest;
"""
# For each infostate: its text, and the titles of the cells of its actions, which are the numbers in the file.
READ_ALL = """
return Array.from(data.infostates, (_, i) => {
  show(data.situationOf[i], i, false);
  const rows = [...document.querySelectorAll("#infostate tbody tr")];
  const cells = (row) => [...row.cells].map((cell) => cell.title || cell.textContent);
  return [document.querySelector("#infostate pre").textContent, rows.map(cells)];
});
"""


def test_a_browser_shows_the_numbers_and_hostile_texts(tmp_path):
    profile = random_profile("kuhn_poker")
    table = infostate_table(profile)
    write_explorer(profile, tmp_path / "kuhn.html", rows=ROWS)
    write_explorer(hostile_profile(), tmp_path / "hostile.html", names=(HOSTILE[0], ""), rows={HOSTILE[1]: ROWS["cfr+"]})
    with browser() as driver:
        opened(driver, tmp_path / "kuhn.html")
        shown = [row for text, rows in driver.execute_script(READ_ALL) for row in rows]
        assert [row[0] for row in shown] == table["action_name"].tolist()
        numbers = np.array([[float(cell) for cell in row[1:]] for row in shown], np.float32)
        for place, column in enumerate(("probability", "expected_value", "regret")):
            np.testing.assert_array_equal(numbers[:, place], table[column].astype(np.float32))
        assert driver.execute_script("return document.querySelectorAll('#curve path.line').length") == 1
        opened(driver, tmp_path / "hostile.html")
        assert {text for text, _ in driver.execute_script(READ_ALL)} == set(HOSTILE)
        driver.execute_script(CLICK_AT_RANDOM)
        assert driver.execute_script("return window.hacked === undefined && document.images.length === 0")
        assert errors(driver) == []


@pytest.mark.slow
def test_a_browser_shows_games_within_the_limits(tmp_path):
    names = ["kuhn_poker", "kuhn_poker_3p", "python_kuhn_poker", "leduc_poker", "liars_dice_3", "goofspiel_3", "tic_tac_toe"]
    with browser() as driver:
        for name in names:
            path = tmp_path / f"{name}.html"
            write_explorer(random_profile(name), path)
            assert path.stat().st_size <= explorer.MOST_BYTES
            assert opened(driver, path) <= 2000
            assert driver.execute_script(CLICK_AT_RANDOM) < 100
            assert errors(driver) == []


@pytest.mark.slow
def test_keys_walk_through_the_game(tmp_path):
    from selenium.webdriver.common.keys import Keys

    write_explorer(random_profile("kuhn_poker"), tmp_path / "kuhn.html")
    with browser() as driver:
        opened(driver, tmp_path / "kuhn.html")
        page = driver.find_element("tag name", "body")
        title = lambda: driver.find_element("id", "title").text  # noqa: E731
        assert title() == "Player 0 to move"
        page.send_keys("1")
        assert title() == "Player 1 to move"
        page.send_keys(Keys.BACKSPACE)
        assert title() == "Player 0 to move"
        driver.find_element("tag name", "body").send_keys(Keys.ARROW_DOWN)
        assert driver.find_element("css selector", "#infostate pre").text == "1"
        page.send_keys("/")
        driver.switch_to.active_element.send_keys("1pb")
        assert [line.text.split(" (")[0] for line in driver.find_elements("css selector", "#found button")] == ["player 0: 1pb"]
