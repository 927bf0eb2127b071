"""Texts that were read with a wrong encoding: "CafÃ©", which was "Café".

Only what no sound text is likely to hold counts as damage. So some of it passes, such as one "Ã—" after a capital
letter, or a lone "Å¡". The library ftfy finds more of it, and can fix it.
"""

import re

#: What a byte from 0x80 up looks like in cp1252, or in latin-1, and the byte.
BYTES = {chr(byte): byte for byte in range(0x80, 0x100)}
BYTES |= {bytes([byte]).decode("cp1252", "ignore") or chr(byte): byte for byte in range(0x80, 0x100)}

#: One of the bytes that go on with a character of UTF-8.
NEXT = "[" + "".join(re.escape(char) for char, byte in BYTES.items() if byte < 0xC0) + "]"
CHARACTER = re.compile(rf"[Â-ß]{NEXT}|[à-ï]{NEXT}{{2}}|[ð-ô]{NEXT}{{3}}")
DAMAGE = re.compile(
    rf"""[\x80-\x84\x86-\x9f]                            # controls that nobody types (U+0085 is a line's end)
    | (?<![A-ZÀ-Þ“‘«„"'])[ÂÃ]{NEXT}                      # é as Ã©, × as Ã—
    | [ÂÃ](?![’”»›—…\xa0]){NEXT}                         # after a capital: but for what may follow a word's end
    | (?<=[a-z])[ÄÅ]{NEXT}                               # a capital within a word: ę as Ä™
    | â[€‚„†ˆ‰]{NEXT} | ðŸ                                # quotes, dashes and signs; emoji
    | (?:[ÂÃÄÅÎÏÐÑ×ØÙ]{NEXT} | [à-ï]{NEXT}{{2}}){{2}}    # two at once: Greek, Cyrillic, Chinese, …
    """,
    re.VERBOSE,
)


def undamaged(text: str) -> str | None:
    """What a text was before UTF-8 was read as cp1252 or latin-1; None where it shows no damage.

    >>> undamaged("CafÃ©, 5 â‚¬"), undamaged("Café, 5 €")
    ('Café, 5 €', None)
    """
    return CHARACTER.sub(_decoded, text) if DAMAGE.search(text) else None


def _decoded(found: re.Match) -> str:
    """One character from its bytes; as it was where they make none."""
    try:
        return bytes(BYTES[char] for char in found[0]).decode("utf-8")
    except UnicodeDecodeError:
        return found[0]
