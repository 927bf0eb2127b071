"""Texts that were read with a wrong encoding: "CafÃ©", which was "Café".

Only characters that are unlikely in a valid text count as damage. So some damage passes, such as one "Ã—" after a
capital letter, or a single "Å¡". The library ftfy finds more of it, and can fix it.
"""

import re

#: What a byte from 0x80 up looks like in cp1252, or in latin-1, and the byte.
BYTES = {chr(byte): byte for byte in range(0x80, 0x100)}
BYTES |= {bytes([byte]).decode("cp1252", "ignore") or chr(byte): byte for byte in range(0x80, 0x100)}

#: A continuation byte of a UTF-8 character.
NEXT = "[" + "".join(re.escape(char) for char, byte in BYTES.items() if byte < 0xC0) + "]"
_CHARACTER = re.compile(rf"[Â-ß]{NEXT}|[à-ï]{NEXT}{{2}}|[ð-ô]{NEXT}{{3}}")
_DAMAGE = re.compile(
    rf"""[\x80-\x84\x86-\x9f]                            # controls that nobody types (U+0085 is a line end)
    | (?<![A-ZÀ-Þ“‘«„"'])[ÂÃ]{NEXT}                      # é as Ã©, × as Ã—
    | [ÂÃ](?![’”»›—…\xa0]){NEXT}                         # after a capital, except for what may follow a word
    | (?<=[a-z])[ÄÅ]{NEXT}                               # a capital within a word: ę as Ä™
    | â[€‚„†ˆ‰]{NEXT} | ðŸ                                # quotes, dashes and signs; emoji
    | (?:[ÂÃÄÅÎÏÐÑ×ØÙ]{NEXT} | [à-ï]{NEXT}{{2}}){{2}}    # two at once: Greek, Cyrillic, Chinese, …
    """,
    re.VERBOSE,
)


def undamaged(text: str) -> str | None:
    """The text before UTF-8 was read as cp1252 or latin-1; None if the text shows no damage.

    >>> undamaged("CafÃ©, 5 â‚¬"), undamaged("Café, 5 €")
    ('Café, 5 €', None)
    """
    return _CHARACTER.sub(_decoded, text) if _DAMAGE.search(text) else None


def _decoded(found: re.Match) -> str:
    """One character from its bytes, or the same text if they are not valid."""
    try:
        return bytes(BYTES[char] for char in found[0]).decode("utf-8")
    except UnicodeDecodeError:
        return found[0]
