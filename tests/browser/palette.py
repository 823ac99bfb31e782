"""Writes a picture with at most 256 colours, which for a page of text is a third of the size."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from playwright.sync_api import Page

# The browser has taken the picture and can read it again: the most frequent colours stay as they are, and
# each of the rest becomes the nearest of those.
INDEX = """async (data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const {width, height} = image;
    const canvas = new OffscreenCanvas(width, height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const raw = canvas.getImageData(0, 0, width, height).data;
    const colour = (at) => (raw[at] << 16) | (raw[at + 1] << 8) | raw[at + 2];
    const counts = new Map();
    for (let at = 0; at < raw.length; at += 4) counts.set(colour(at), (counts.get(colour(at)) ?? 0) + 1);
    const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([one]) => one);
    const part = (one, by) => (one >> by) & 255;
    const apart = (a, b) => [16, 8, 0].reduce((sum, by) => sum + (part(a, by) - part(b, by)) ** 2, 0);
    const nearest = new Map(palette.map((one, index) => [one, index]));
    let indices = "";
    for (let at = 0; at < raw.length; at += 4) {
        const one = colour(at);
        if (!nearest.has(one)) {
            let best = 0;
            palette.forEach((other, index) => {
                if (apart(one, other) < apart(one, palette[best])) best = index;
            });
            nearest.set(one, best);
        }
        indices += String.fromCharCode(nearest.get(one));
    }
    return {width, height, palette, indices: btoa(indices)};
}"""


def write(page: Page, png: bytes, file: Path) -> None:
    """Write the PNG anew with a palette. `page` is a blank one, to compute in."""
    found = page.evaluate(INDEX, base64.b64encode(png).decode())
    width, height = found["width"], found["height"]
    indices = base64.b64decode(found["indices"])
    rows = b"".join(b"\0" + indices[start : start + width] for start in range(0, width * height, width))
    colours = b"".join(colour.to_bytes(3, "big") for colour in found["palette"])
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", colours),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
