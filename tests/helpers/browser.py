"""A browser without a window for the tests of pages; they are skipped where selenium or Chromium is missing."""

import contextlib
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

MOST_SECONDS = 30


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A driver of Chromium; the test is skipped if there is none."""
    selenium = pytest.importorskip("selenium.webdriver", reason="tests of pages in a browser need: pip install selenium")
    program, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if program is None or driver is None:
        pytest.skip("tests of pages in a browser need chromium and chromedriver")
    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1300,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with selenium.Chrome(options=options, service=selenium.ChromeService(driver)) as started:
        yield started


def opened(driver: Any, path: pathlib.Path) -> float:
    """Opens a page and waits until it is ready; returns the milliseconds since the navigation started."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(path.as_uri())
    script = "return document.body.dataset.ready ? performance.now() : null"
    milliseconds: float = WebDriverWait(driver, MOST_SECONDS, 0.01).until(lambda driver: driver.execute_script(script))
    return milliseconds


def errors(driver: Any) -> list[str]:
    """What the page has written to the console."""
    return [entry["message"] for entry in driver.get_log("browser")]
