"""What a page looks like, asked of the browser."""

from __future__ import annotations

import base64

from playwright.sync_api import Page

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
