"""Values that try to hide something, and a second opinion on what may be shown as it is."""

from __future__ import annotations

import regex
from hypothesis import strategies as st

from confirmhub.display.properties import LOOKALIKES, SEQUENCES

OPEN, CLOSE = "\u27e8", "\u27e9"
TOKEN = regex.compile(r"\u27e8(?:U\+[0-9A-F]{4,6}(?:\u00d7[0-9]+)?|empty)\u27e9")

_SPECIAL = (
    " \t\n\r\0\x1b\x85\x9b\u00a0\u00ad\u2028\u2029\u3000"  # spaces, breaks, controls
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u2066\u2067\u2069\ufeff\u034f"  # invisible
    "\ufe00\ufe0e\ufe0f\U000e0001\U000e0041\U000e007f\U000e0100\u180b"  # selectors, tags
    "\u3164\u115f\u1160\uffa0\u2800\ufffc\U0001d159\U00016fe4\u17b4"  # blanks
    "\u0301\u0302\u0308\u0338\u0335\u20d2\u20dd\u20e3\u0327\u064b\u0651\u05bc\u093c\u3099"  # marks
    "\u0915\u094d\u0937\u0930\u09b0\u09cd\u09af\u0dca\u0dbb\u093e\u0903"  # Indic
    "\u0628\u0627\u0645\u06cc\u062e\u0640\u07cf\u1820\u05d0\u0661\u06f4\u0600\u06dd"  # joining, RTL
    "\u1100\u1161\u11a8\uac00\u0e33\uff9e"  # Hangul, continuing letters
    "0123#*aAzUu+.e/\\:@?&=,;~-'\"<>()\u2026\uff0b\uff55\u212b\u00c5\u00e1=\u2260"
    "\u27e8\u27e9\u2039\uff1c\u3008\u2329\u276c\u2770\u2991\u29fc\u27ea\u00d7\u0430\u03bf\u01c3"
    "\U0001f468\U0001f469\U0001f466\U0001f3fd\u2764\u263a\u00a9\u231a\U0001f525\U0001f3f4\u2620"
    "\U0001f1e9\U0001f1ea\U000e0067\U000e0062\U000e0065\U000e006e\U0001f600"  # emoji, flags
    "\ud800\udc00\udce9\ue000\u0378\ufffe\U0001fae9\U00010ffff"  # no characters at all
)
characters = st.one_of(
    st.sampled_from(_SPECIAL),
    st.sampled_from(" ab<\u200b\u200c\u200d\ufe0f\u0301\u064b\u0628\u0915\u094d\u27e8"),
    st.characters(categories=["Mn", "Mc", "Me", "Cf", "Zs", "Lo", "So"]),
    st.characters(codec=None),
)
_pieces = st.one_of(
    characters,
    st.builds(lambda char, count: char * count, characters, st.integers(2, 9)),
    st.sampled_from(sorted(SEQUENCES)),
    st.sampled_from(
        [
            *("u+202E", "U+0020\u00d740", "empty", "...", "\u27e8U+200B\u27e9", "<U+200B>", "<\uff35+1"),
            *("rm -rf /", "paypal", "\u0915\u094d\u200d\u0937", "\u0645\u06cc\u200c\u062e", "1\ufe0f\u20e3"),
        ]
    ),
)
values = st.lists(_pieces, max_size=14).map("".join)
"""Any string, with a weight on what the rules are about."""

words_and_twins = st.lists(
    st.sampled_from(sorted(LOOKALIKES)) | st.sampled_from("acehlopxyiOIs/;-.1"), min_size=1, max_size=6
).map("".join)

# Rule R2, from the properties of the `regex` module and not from our tables.
_ALWAYS = (
    r"[[\p{Cc}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{Cf}\p{DI}\u2800\uFFFC\U0001D159\U00016FE4\p{Me}]"
    r"--\p{PCM}--\ ]"
)
# Rule R4. What the lists of emoji sequences hold is tested apart.
_EXCEPTIONS = regex.compile(
    r"(?<=\p{ccc=9})\u200c"
    r"|(?<=[\p{jt=L}\p{jt=D}]\p{jt=T}*)\u200c(?=\p{jt=T}*[\p{jt=R}\p{jt=D}])"
    r"|(?<=\p{ccc=9})\u200d"
    r"|(?<=\p{Lo})\u200d(?=\p{ccc=9})"
    r"|(?<=\p{Emoji}\ufe0f?)\u200d(?=\p{Emoji})"
    r"|(?<=[\p{Emoji}--\p{EPres}--[0-9\#*]])\ufe0f"
    r"|(?<=[0-9\#*])\ufe0f(?=\u20e3)"
    r"|(?<=\p{EPres})\ufe0e"
    r"|(?<=[0-9\#*]\ufe0f?)\u20e3"
    r"|(?<=\U0001f3f4)\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067"
    r"|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f",
    flags=regex.V1,
)
_FORBIDDEN = regex.compile(_ALWAYS, flags=regex.V1)


def hidden_in(projection: str) -> list[str]:
    """What a text projection should show as a token and does not."""
    # A private use character stands for each token, so that nothing leans on one.
    without_tokens = TOKEN.sub("\u27e8", projection)
    return _FORBIDDEN.findall(_EXCEPTIONS.sub("", without_tokens))
