"""The English words that decide what a number in an answer means: units, and words that change a value.

    >>> canonical_unit("hrs"), canonical_unit("apples"), is_plural("M&Ms"), changes_value("doubled")
    ('hour', 'apple', True, True)

The grammar in `numbers` accepts only known words next to the number: a verb of `SAYS` before it, and a unit, a plural
noun or a word of `ENDINGS` after it. It rejects an unknown word there. Farther away, it accepts any word except for
those for which `changes_value` is true.
"""

from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NUMERALS = _words("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
""")
ORDINALS = {f"{word}th" for word in NUMERALS} | {f"{word[:-1]}ieth" for word in NUMERALS if word.endswith("ty")}
ORDINALS |= {"third", "fifth", "eighth", "ninth", "twelfth", "half", "quarter"}

#: After "the", these words say which ones, not how many.
WHICH_ONES = sorted((set(NUMERALS) | ORDINALS | {"first"}) - {"zero", "half", "quarter"})
#: Nouns that stand for a number, also in the plural.
MULTIPLES = _words("pair duo trio brace fold grand mil mn ream ten score couple quartet quintet sextet octet")
#: Words that change a number, doubt it, deny it or compare with it.
CHANGES = _words("""
    twice thrice once basis bp bps ppm ppb mille pct plus minus positive less fewer lesser times squared cubed
    root sqrt log ln exp sin cos tan abs pi power mod modulo base hex octal binary decimal off short shy down
    under over above below beyond between within behind ahead past ago loss deficit debt shortfall than ish not
    no never none neither nor nobody nothing nowhere noone nay without cannot cant dont wont isnt arent wasnt
    reckon wonder said says told claims claim according example sample default dummy draft placeholder hint todo
    before after except unless unlike unequal instead rather but however though although yet despite if whether
    else otherwise or either versus vs other bad lie lied fake fraud joke kidding nonsense bogus wait oops sorry
    hmm um tbd idk about around circa ca approx maybe perhaps some few several enough thereabouts provided
    providing too almost close near think thinks thought bet bets say might could should ought may unsure
    perchance look feel sound sort kind least most best worst min max tops question bound limit range am pm bc
    bce ad ce noon midnight
""")
#: Stems of such words: every word that begins with one of them.
STEMS = _words("""
    doubl tripl trebl quartered quadrupl quintupl sextupl septupl octupl multipl halv dozen coupl hundred
    thousand million billion trillion quadrillion myriad lakh crore percent permil permyriad squaring cubing
    increas decreas reduc subtract divid divis round truncat negat invers invert revers opposit reciproc
    complement exceed approach lack missing misses overdraw overest underest approximat estimat guess possibly
    probabl likel unlikel presum assum suppos suspect seem appear uncertain unclear unknown believ hope unconfirm
    doubt dubious questionable wrong incorrect inaccurat inexact imprecis invalid erron error mistak fals fail
    reject refus deny denie contradict disagree exclud cancel ignor retract withdr disregard pretend trick
    attempt tried previous former hypothe allege infinit hexadec imagin fractional logarithm exponent factorial
    minim maxim depend vary varies conditional impossib unable disput rumor refut disprov untru surpass hunch
    ballpark ceiling tentat subject
""")
#: Adverbs in -ly that do not change a value; all others express doubt (roughly, presumably, …). And a few names.
LY = _words("""
    exactly precisely currently fully recently quickly slowly freely finally only simply really daily weekly
    monthly yearly hourly consequently accordingly initially originally ultimately eventually early equally
    jointly family jelly july italy emily sally kelly molly billy lily holly polly carly kimberly
""")

#: Words directly before a number: verbs for being or having, and words of conclusion.
VERBS = _words("""
    be equal total have get need take make cost earn pay spend save sell buy eat use deliver give leave own hold
    contain weigh measure score receive collect read bake pick charge walk hike bike jog run travel drive ride
    fly swim bring produce plant require owe carry sum become win lose find see count consume drink provide
    raise donate purchase work last go finish gain fill cut share invite hit catch throw solve type write draw
    paint build cook serve keep put lay remain yield show hire rent visit watch learn grow jump climb deposit
    borrow pack load order ship mail send print pour sleep study practice wait choose feed clean wash wear bear
""")
SAYS = frozenset(f"{verb}{ending}" for verb in VERBS for ending in ("", "s", "es", "d", "ed"))
SAYS |= _words("""
    is are was were it's that's has had got made took paid spent sold bought ate gave left held won lost found saw ran
    drove brought rode flew swam wrote drew built kept laid grew sent slept chose fed wore drank caught threw went
    carries studies carried studied lent leaving making giving totaling totalling adding answer answers ans result
    solution value number so therefore thus hence then finally yes exactly precisely only just each the a an these
    those all another additional extra both
""")
#: Between the verb and the number ("It takes him 42 minutes").
OBJECTS = _words("me you him her it us them")
#: A sentence that begins with one of these words is a question.
QUESTIONS = _words("is are was were does do did")
#: A preposition leads to a number only after one of these words.
LEADS_WITH = {
    "of": _words("total sum answer result value amount cost profit price number average balance"),
    "to": _words("equal equals equaled comes come came amounts amount amounted sums simplifies evaluates"),
    "with": _words("left ends up started starts"),
}

#: After one of these words, "with" leads to a number ("That leaves her with 17 beads").
LEAVES = _words("leave leaves left leaving end ends ended")
#: If a unit or noun follows the number, any word but these may come before it: a verb, a name, "now".
NO_VERBS = _words("""
    of to from by at on until till since per with through against as and out into toward towards like such war cup beat
    beats trail trails forgot skip skips skipped add adds room no. chapter page step problem level grade part section
    line row day week year
""")
#: "The minimum is 3" names what is asked for, "a minimum of 3" does not; and "should pay" says what "should be" doubts.
QUANTITIES = _words("""
    minimum maximum min max least greatest loss deficit debt range limit increase decrease reduction probability power
    exponent missing chance difference score
""")
DUTIES = _words("should could")

#: Words that may end an answer after a number or its noun.
ENDINGS = _words("""
    more extra additional total altogether combined overall together left remaining old long tall wide high deep
    thick today now daily weekly monthly yearly annually each every apiece available needed required exactly
    precisely only big small new whole full
""")
CONFIRMS = _words("is was the my our final correct right exact answer result solution total")
#: Words that may begin a phrase after a number or its noun ("of the apples", "per hour", "a day").
PREPOSITIONS = _words("of in on at for per from by during a an each every as into across along through this")
#: Words of two letters that do not affect the number.
SHORT = _words("sq cu to he we me my us it up do go so")
#: After "times", these words say how often, not what is multiplied.
OFTEN = _words("a an per each every in as daily weekly monthly total altogether")

#: The letters of `numbers.PHRASE`: endings, prepositions, a verb, "and", pronouns, marks, and exceptions.
PRONOUNS = _words("it he she they we you i there that who which what when where")
KINDS = dict.fromkeys(PREPOSITIONS, "P") | dict.fromkeys(ENDINGS, "E") | dict.fromkeys(PRONOUNS, "Y")
KINDS |= {"are": "B", "were": "B", "and": "A", "-": "-", "/": "/", "\u00b0": "U", "times": "N"}
KINDS |= dict.fromkeys(("score", "scores", "gross", "is", "was"), "X")
#: Words that change which number is meant: "the square of it is 42".
POWERS = frozenset(["square", "squares", "cube", "cubes"])

#: One entry per unit: its name, then other names and signs.
UNIT_LINES = """
second sec secs s|minute min mins|hour h hr hrs|day|week wk wks|month|year yr yrs|decade|century
meter m metre|centimeter cm centimetre|millimeter mm millimetre|kilometer km kilometre kms|mile mi
foot ft feet|inch in inches|yard yd yds|sqft|acre|hectare ha
gram g|kilogram kg kgs kilo|milligram mg|ounce oz|pound lb lbs £ gbp|ton tonne
liter l L litre|milliliter ml mL millilitre|gallon gal|quart|pint|cup|tablespoon tbsp|teaspoon tsp
mph|kph kmh|mpg|wpm|rpm|psi|fps|degree ° deg|C celsius|F fahrenheit|W watt|kW|kWh
V volt|amp amps ampere|J joule|N newton|Hz hertz|GHz|MHz|ms
bit|byte|KB kb|MB mb|GB gb|TB tb|calorie cal kcal
dollar $ usd buck us$|cad c$|aud a$|cent ¢ c|euro € eur|yen ¥ jpy|rupee ₹ rs inr|yuan cny rmb
franc chf fr|krona kr sek nok dkk
ruble ₽ rub|won ₩ krw|peso ₱ mxn php|rand zar|r$ brl|zloty pln|lira ₺|dirham aed|ringgit rm
person people persons|child children|piece pc pcs
"""
UNITS = {name: names.split()[0] for names in UNIT_LINES.replace("\n", "|").split("|") for name in names.split()}
#: Names of money that may stand before a number ("USD 42", "Rs. 42").
MONEY_NAMES = (
    "us$ usd cad aud c$ a$ eur gbp jpy rs inr cny rmb chf sek nok dkk kr rub krw mxn php zar r$ brl pln aed rm"
)
IRREGULAR_PLURALS = _words("""
    people men children feet teeth mice geese fish sheep deer dice police cattle salmon trout shrimp series
    species
""")
NOT_PLURAL = _words("has does was yes always sometimes besides equals means lies goes")


#: All words that are numbers themselves.
COUNTS = MULTIPLES | ORDINALS | set(NUMERALS)


@lru_cache(maxsize=10_000)
def changes_value(word: str) -> bool:
    """Whether a word changes, doubts or denies a number, anywhere in the text.

    >>> [changes_value(word) for word in ("couples", "isn't", "half-dozen", "seventeenths", "roughly", "Emily", "eggs")]
    [True, True, True, True, True, False, False]
    """
    word = word.lower().replace("\u2019", "'")
    return word.endswith("n't") or any(_changes(part) for part in word.split("-"))


def _changes(part: str) -> bool:
    if part in CHANGES or not COUNTS.isdisjoint((part, part.removesuffix("s"))):
        return True
    if part.endswith("ly") and part not in LY:
        return True
    return part.startswith(tuple(STEMS)) or part.endswith(("illion", "illions"))


def is_plural(word: str) -> bool:
    """Whether a word looks like an English plural noun.

    >>> [is_plural(word) for word in ("eggs", "children", "minus", "gross", "doubled", "egg")]
    [True, True, False, False, False, False]
    """
    word = word.lower()
    if word in NOT_PLURAL or len(word) < 3:
        return False
    regular = word.endswith("s") and not word.endswith(("ss", "us", "is", "wards"))
    return regular or word.endswith(tuple(IRREGULAR_PLURALS))


def is_unit_name(word: str) -> bool:
    """Whether a word is the name or sign of a unit; case matters for one or two letters.

    >>> is_unit_name("km"), is_unit_name("Dollar"), is_unit_name("m"), is_unit_name("M"), is_unit_name("x")
    (True, True, True, False, False)
    """
    lower = word.lower()
    return word in UNITS or (len(word) > 2 and (lower in UNITS or lower.removesuffix("s") in UNITS))


def canonical_unit(word: str) -> str:
    """The name by which a unit or noun is compared.

    >>> canonical_unit("kms"), canonical_unit("USD"), canonical_unit("Boxes")
    ('kilometer', 'dollar', 'boxe')
    """
    lower = word.lower()
    single = lower.removesuffix("s")
    area = {"sq": "square", "cu": "cubic"}
    return UNITS.get(word) or UNITS.get(lower) or UNITS.get(single) or area.get(lower, single)
