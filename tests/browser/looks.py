"""What a page looks like, asked of the browser."""

from __future__ import annotations

import base64
import re
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# The browser has taken the pictures and can read them again. A pixel is another one where a channel is off by
# more than a quarter: less is a letter that begins a fraction of a pixel further left.
COMPARE = """async (pictures) => {
    const [one, other] = await Promise.all(pictures.map(async (data) => {
        const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
        const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, image.width, image.height);
    }));
    if (one.width !== other.width || one.height !== other.height) return 1;
    const [a, b] = [one.data, other.data];
    let differ = 0;
    for (let at = 0; at < a.length; at += 4)
        differ += [at, at + 1, at + 2].some((byte) => Math.abs(a[byte] - b[byte]) > 64);
    return differ * 4 / a.length;
}"""


def scrolls_sideways(page: Page) -> bool:
    """Whether something stands out of the page to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def difference(page: Page, one: bytes, other: bytes) -> float:
    """The share of pixels in which two PNGs differ, 0 to 1; 1 where their sizes do. `page` computes."""
    share: float = page.evaluate(COMPARE, [base64.b64encode(png).decode() for png in (one, other)])
    return share


def contrast(ink: str, paper: str) -> float:
    """WCAG 2.2, contrast ratio."""
    low, high = sorted(luminance(colour) for colour in (ink, paper))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance, of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# How a button catches the eye, and its colours: of the letters, of the border, of what it stands on.
PROMINENCE = """button => {
    const style = getComputedStyle(button), {width, height, top} = button.getBoundingClientRect();
    const same = ["fontSize", "fontWeight", "fontFamily", "borderWidth", "borderStyle", "borderRadius",
        "opacity", "backgroundColor", "backgroundImage", "boxShadow", "textDecorationLine", "transform"];
    let ground = button;
    while (getComputedStyle(ground).backgroundColor.endsWith(", 0)")) ground = ground.parentElement;
    return {
        same: {width, height, top, ...Object.fromEntries(same.map((name) => [name, style[name]]))},
        colours: [style.color, style.borderTopColor],
        ground: getComputedStyle(ground).backgroundColor,
    };
}"""


def stand_out_alike(one: Locator, other: Locator) -> None:
    """Assert that of two buttons neither is more prominent, and that each can be read (WCAG 2.2, 1.4.3)."""
    one.page.mouse.move(0, 0)
    first, second = one.evaluate(PROMINENCE), other.evaluate(PROMINENCE)
    assert first["same"] == second["same"]
    assert first["same"]["height"] >= 44
    assert min(contrasts(first) + contrasts(second)) >= 4.5
    assert contrasts(first) == pytest.approx(contrasts(second), rel=0.02)


def contrasts(found: dict[str, Any]) -> list[float]:
    return [contrast(colour, found["ground"]) for colour in found["colours"]]
