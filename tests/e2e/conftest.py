"""The product, a browser and a person in front of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests import chromium
from tests.e2e import product as products
from tests.e2e.person import Person
from tests.e2e.product import Product


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what looks at processes where there is no /proc to look at."""
    here = [item for item in items if "tests/e2e/" in item.path.as_posix()]
    if sys.platform != "linux":
        for item in here:
            item.add_marker(pytest.mark.skip(reason="asks /proc, and needs PR_SET_PDEATHSIG"))


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """`./hub up`, started for the first time; it must end in time and whole."""
    chromium.find()  # before the long start
    with products.running() as product:
        yield product
        product.stop()


# Not for the session: while Playwright runs, no other test of this process can run an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.running("--disable-gpu") as browser:
        yield browser


@pytest.fixture(scope="module")
def person(browser: Browser, product: Product) -> Iterator[Person]:
    """The administrator. Their browser may meet no error, and no request may leave the machine."""
    somebody = Person(browser, product)
    yield somebody
    assert somebody.problems == []
