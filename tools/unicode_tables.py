"""Write the tables of confirmhub/display/tables from the Unicode data files.

    python tools/unicode_tables.py           write them
    python tools/unicode_tables.py --check   exit with 1 if what is there differs

The inputs, none of which is needed to run or test confirmhub:

- the Debian package unicode-data 15.0.0-1, which installs into /usr/share/unicode;
- the PyPI package glyphguard 0.3.0, for confusables.txt of UTS #39, which Debian does not ship.

Unicode 15.0 is what Python 3.12 knows, so every character that these tables call assigned is
known to the `unicodedata` of every Python that confirmhub runs on, and normalizes alike there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import itertools
import sys
import textwrap
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from glyphguard._data import ucd as glyphguard

UNICODE = Path("/usr/share/unicode")
UNICODE_VERSION = "15.0.0"
GLYPHGUARD_VERSION = "0.3.0"
TABLES = Path(__file__).parents[1] / "confirmhub/display/tables"

ALL = range(0x110000)
ZWJ = 0x200D
VARIATION_SELECTOR_16 = 0xFE0F
TONES = range(0x1F3FB, 0x1F400)

# Drawn as nothing, though their properties do not say so.
BLANK = frozenset({0x2800, 0x1D159, 0xFFFC, 0x16FE4})


def fields(name: str) -> Iterator[list[str]]:
    """Every data line of a UCD file, split at its semicolons."""
    for line in (UNICODE / name).read_text(encoding="utf-8").splitlines():
        if data := line.partition("#")[0].strip():
            yield [field.strip() for field in data.split(";")]


def property_values(name: str) -> Iterator[tuple[range, str]]:
    """Every code point range of a UCD file with its value."""
    for codes, value, *_ in fields(name):
        first, _, last = codes.partition("..")
        yield range(int(first, 16), int(last or first, 16) + 1), value


def members(name: str, *values: str) -> frozenset[int]:
    """The code points that have one of the values in a UCD file."""
    return frozenset(code for codes, value in property_values(name) if value in values for code in codes)


def ranges(codes: Iterable[int]) -> list[tuple[int, int]]:
    """The code points as inclusive ranges."""
    found: list[tuple[int, int]] = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


def written(codes: Iterable[int]) -> str:
    """Inclusive ranges as text: `A B-C ...`, in hex."""
    return " ".join(
        f"{first:04X}" if first == last else f"{first:04X}-{last:04X}" for first, last in ranges(codes)
    )


def constant(name: str, text: str, comment: str) -> str:
    lines = textwrap.wrap(text, 94, break_on_hyphens=False)
    return f'# {comment}\n{name} = """\n' + "\n".join(lines) + '\n"""\n'


def mapping(name: str, rows: Iterable[tuple[str, str]], comment: str) -> str:
    """A dictionary of strings, in rows that fit the line length."""
    body = []
    for key, value in rows:
        lines = textwrap.wrap(value, 86, break_on_hyphens=False)
        if len(lines) == 1 and len(key) + len(value) < 86:
            body.append(f'    "{key}": "{value}",\n')
        else:
            quoted = "".join(f'        "{line} "\n' for line in lines[:-1])
            body.append(f'    "{key}": (\n{quoted}        "{lines[-1]}"\n    ),\n')
    return f"# {comment}\n{name} = {{\n" + "".join(body) + "}\n"


def module(purpose: str, *constants: str) -> str:
    return (
        f'"""{purpose}\n\n'
        f"Written by tools/unicode_tables.py from the Debian package unicode-data {UNICODE_VERSION}-1\n"
        f"and the PyPI package glyphguard {GLYPHGUARD_VERSION} (confusables.txt of Unicode "
        f'{glyphguard.UNICODE_VERSION}). Do not edit.\n"""\n\n' + "\n".join(constants)
    )


GENERAL_CATEGORY = {
    code: value for codes, value in property_values("extracted/DerivedGeneralCategory.txt") for code in codes
}


def in_category(*names: str) -> frozenset[int]:
    return frozenset(code for code in ALL if GENERAL_CATEGORY[code] in names)


def escaped() -> frozenset[int]:
    """Rule R2, and the two brackets of R3."""
    prepended = members("PropList.txt", "Prepended_Concatenation_Mark")
    return (
        (in_category("Cc", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") - {0x20})
        | members("DerivedCoreProperties.txt", "Default_Ignorable_Code_Point")
        | (in_category("Cf") - prepended)
        | BLANK
        | {0x27E8, 0x27E9}
    )


def characters() -> str:
    joining = "extracted/DerivedJoiningType.txt"
    combining = "extracted/DerivedCombiningClass.txt"
    emoji = members("emoji/emoji-data.txt", "Emoji")
    pictures = members("emoji/emoji-data.txt", "Emoji_Presentation")
    controls: dict[str, str] = {}
    for codes, alias, kind in fields("NameAliases.txt"):
        # The first alias is the one in use; the later ones are historical.
        if kind in ("control", "figment") and GENERAL_CATEGORY[int(codes, 16)] == "Cc":
            controls.setdefault(codes, alias)
    return module(
        "What the renderer must know of characters.",
        f'UNICODE_VERSION = "{UNICODE_VERSION}"\n',
        constant("ESCAPED", written(escaped()), "Shown as a token, but for the listed exceptions."),
        constant("UNASSIGNED", written(in_category("Cn")), "General_Category Cn."),
        constant("LETTER_OTHER", written(in_category("Lo") - escaped()), "General_Category Lo."),
        constant("MARK_NONSPACING", written(in_category("Mn") - escaped()), "Mn."),
        constant("MARK_SPACING", written(in_category("Mc") - escaped()), "Mc."),
        constant("MARK_ENCLOSING", written(in_category("Me")), "Me."),
        constant("VIRAMA", written(members(combining, "9")), "Canonical_Combining_Class 9."),
        constant("OVERLAY", written(members(combining, "1")), "Canonical_Combining_Class 1."),
        constant("JOINS_NEXT", written(members(joining, "L", "D")), "Joining_Type L or D."),
        constant("JOINS_PREVIOUS", written(members(joining, "R", "D")), "Joining_Type R or D."),
        constant("TRANSPARENT", written(members(joining, "T")), "Joining_Type T."),
        constant(
            "PREPENDED",
            written(members("PropList.txt", "Prepended_Concatenation_Mark")),
            "Prepended_Concatenation_Mark.",
        ),
        constant("EMOJI_AS_TEXT", written(emoji - pictures), "Emoji without Emoji_Presentation."),
        constant("EMOJI_AS_PICTURE", written(pictures), "Emoji_Presentation."),
        mapping("CONTROL_NAMES", controls.items(), "The formal aliases of the controls."),
    )


def emoji() -> str:
    """The listed sequences, grouped by the skin tones that they are listed with.

    A sequence without U+FE0F and without tones is a shape; the tones that a shape can have are a
    set of strings, one digit a place (0 = none). A few such sets serve all shapes.
    """
    listed = [row[0] for row in fields("emoji/emoji-zwj-sequences.txt")]
    listed += [row[0] for row in fields("emoji/emoji-sequences.txt") if row[1] == "RGI_Emoji_Tag_Sequence"]
    toned: dict[str, set[str]] = defaultdict(set)
    for row in listed:
        codes = [code for item in row.split() if (code := int(item, 16)) != VARIATION_SELECTOR_16]
        shape: list[str] = []
        tones = ""
        for code, following in itertools.pairwise([*codes, 0]):
            if code in TONES:
                continue
            if following in TONES:
                shape.append(f"{code:04X}*")
                tones += str(1 + TONES.index(following))
            else:
                shape.append(f"{code:04X}")
        toned["_".join(shape)].add(tones)
    groups: dict[str, list[str]] = defaultdict(list)
    for shape_text, tone_sets in toned.items():
        groups[" ".join(sorted(tone_sets))].append(shape_text)
    return module(
        "The emoji sequences that Unicode lists, written without U+FE0F.",
        mapping(
            "SEQUENCES",
            ((tones, " ".join(shapes)) for tones, shapes in groups.items()),
            "Skin tones (1 to 5, for each * in turn), and the sequences listed with them.",
        ),
    )


def script_sets() -> dict[int, tuple[str, ...]]:
    """Script_Extensions, as full names; nothing for Common and Inherited."""
    names = {row[1]: row[2].replace("_", " ") for row in fields("PropertyValueAliases.txt") if row[0] == "sc"}
    found = {
        code: (value.replace("_", " "),) for codes, value in property_values("Scripts.txt") for code in codes
    }
    for codes, value in property_values("ScriptExtensions.txt"):
        extension = tuple(sorted(names[short] for short in value.split()))
        found.update(dict.fromkeys(codes, extension))
    return {code: value for code, value in found.items() if value not in {("Common",), ("Inherited",)}}


def scripts() -> str:
    by_set: dict[str, set[int]] = defaultdict(set)
    for code, names in script_sets().items():
        by_set[", ".join(names)].add(code)
    return module(
        "The scripts that characters are used in (Script_Extensions).",
        mapping(
            "SCRIPTS",
            ((names, written(codes)) for names, codes in sorted(by_set.items())),
            "A script, or several, and the characters. Not listed: Common and Inherited.",
        ),
    )


def skeleton_of() -> Callable[[str], str]:
    prototypes = {
        source: "".join(map(chr, target))
        for source, target in zip(glyphguard.CONFUSABLE_SOURCES, glyphguard.CONFUSABLE_TARGETS, strict=True)
    }

    def skeleton(char: str) -> str:
        decomposed = unicodedata.normalize("NFD", char)
        mapped = "".join(prototypes.get(ord(part), part) for part in decomposed)
        return unicodedata.normalize("NFD", mapped)

    return skeleton


def lookalikes() -> str:
    """What looks like ASCII and is not.

    Without the characters that NFKC, but not NFC, turns into ASCII: they are told by that.
    """
    skeleton, hidden = skeleton_of(), escaped()
    by_look: dict[str, set[int]] = defaultdict(set)
    for code in ALL:
        if code < 0x80 or code in hidden:
            continue
        look = unicodedata.normalize("NFC", chr(code))
        if not look.isascii():
            look = skeleton(chr(code))
            if unicodedata.normalize("NFKC", chr(code)).isascii():
                continue
        if look.isascii():
            by_look[look.replace("\\", "\\\\").replace('"', '\\"')].add(code)
    return module(
        "Characters that can be taken for ASCII.",
        f'CONFUSABLES_VERSION = "{glyphguard.UNICODE_VERSION}"\n',
        mapping(
            "LOOKALIKES",
            ((look, written(codes)) for look, codes in sorted(by_look.items())),
            "The ASCII text, in its UTS #39 prototype, and what looks like it.",
        ),
    )


# Of look-alikes, what is in everyday use is in a character set of before Unicode. The order is of use.
CHARACTER_SETS = (
    *("cp1252", "cp1250", "cp1254", "cp1257", "cp1258", "cp1251", "cp1253", "cp1256", "cp1255"),
    *("tis_620", "gb2312", "shift_jis", "big5", "euc_kr"),
)
# What these tell wrongly: dash, one, bullet, D with stroke, yeh, the commoner ones of letters of Thai.
FIRST = "\u2014\u4e00\u2022\u0110\u064a\u0e17\u0e21\u0e14"


def usualness(char: str) -> tuple[int, int, int]:
    """In the order of use, for a sort; from 99 on, not in everyday use."""
    if char.isascii():
        return 0, 0, ord(char)
    if char in FIRST:
        return 1, 0, FIRST.index(char)
    for number, name in enumerate(CHARACTER_SETS):
        with contextlib.suppress(UnicodeEncodeError):
            char.encode(name)
            return 2 + number, GENERAL_CATEGORY[ord(char)][0] in "PS", ord(char)
    return 99, 0, ord(char)


def twin(char: str) -> str:
    return f"{ord(char):04X}" + "*" * (usualness(char) >= (99,))


def twins() -> str:
    """What looks like what: the classes of equal skeletons (UTS #39, section 4).

    Of characters that are in NFC, are shown as they are and have no plainer form (NFKC), for the
    others are told by that. A syllable of Hangul is left out, since its letters stand in a block,
    and the skeleton sets them in a row.
    """
    skeleton, hidden = skeleton_of(), escaped()
    classes: dict[str, list[str]] = defaultdict(list)
    for char in map(chr, ALL):
        unusable = ord(char) in hidden or GENERAL_CATEGORY[ord(char)] == "Me" or "\uac00" <= char <= "\ud7a3"
        if not unusable and unicodedata.normalize("NFKC", char) == char:
            classes[skeleton(char)].append(char)
    return module(
        "Characters that look like one another.",
        mapping(
            "TWINS",
            (
                (
                    " ".join(f"{ord(char):04X}" for char in look),
                    " ".join(map(twin, sorted(members, key=usualness))),
                )
                for look, members in sorted(classes.items())
                if len(members) > 1 or len(look) > 1
            ),
            "A prototype of UTS #39, and what looks like it, the usual first; a star: not in everyday use.",
        ),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of confirmhub/display/tables.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    if f"# PropList-{UNICODE_VERSION}.txt" not in (UNICODE / "PropList.txt").read_text("utf-8"):
        sys.exit(f"{UNICODE} is not Unicode {UNICODE_VERSION}")
    if importlib.metadata.version("glyphguard") != GLYPHGUARD_VERSION:
        sys.exit(f"glyphguard is not {GLYPHGUARD_VERSION}")
    stale = []
    for write in (characters, emoji, scripts, lookalikes, twins):
        path, text = TABLES / f"{write.__name__}.py", write()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if not check:
                path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{'differs' if check else 'written'}: {', '.join(stale) or 'nothing'}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
