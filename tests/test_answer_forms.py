"""Ways to write a right answer, near misses, and what texts that nobody meant as an answer cost and earn."""

import random
import re
import time
from itertools import pairwise

import pytest
import reader_answers

from grpo_utils.rewards import (
    AnswerReward,
    correctness_reward,
    exact_reward,
    extract_all,
    fuzzy_reward,
    is_strictly_right,
    parse_number,
    same_answer,
    same_fact,
)

# fmt: off
#: The same answer in another writing: what was said, and the gold answer.
RIGHT = [
    ('**42**', '42'), ('*42*', '42'), ('__42__', '42'), ('_42_', '42'), ('***42***', '42'), ('`42`', '42'),
    ('```42```', '42'), ('24 times', '24'), ('It takes 42 minutes.', '42'), ('He needs 42 more.', '42'),
    ('762 M&Ms', '762'), ("762 M&M's", '762'), ('Rs. 42', '42'), ('Rs 42', '42'), ('Rs.42', '42'), ('USD 42', '42'),
    ('42 EUR', '42'), ('US$42', '42'), ('CHF 42.00', '42'), ('kr 42', '42'), ('42 kr', '42'), ('1 000', '1000'),
    ('1\u2009000', '1000'), ('1\u202f000', '1000'), ('1\xa0234\xa0567', '1234567'), ('\xbd', '1/2'), ('\xbd', '0.5'),
    ('2\xbd', '2.5'), ('2 \xbd', '5/2'), ('\\text{odd}', 'odd'), ('odd', '\\text{odd}'), ('\\text{C}', '(C)'),
    ('(C)', '\\text{C}'), ('C', '(C)'), ('\\cfrac{1}{2}', '0.5'), ('\\textnormal{42}', '42'),
    ('42\\textnormal{ cm}', '42'), ('\\mathbf{42}', '42'), ('Answer: 42', '42'), ('= 42', '42'),
    ('**Answer:** 42', '42'), ('**Answer: 42**', '42'), ('Final answer: 42', '42'),
    ('The final answer is **42**.', '42'), ('$42$', '42'), ('\\(42\\)', '42'), ('\\[42\\]', '42'), ('$$42$$', '42'),
    ('#### 42', '42'), ('$\\boxed{42}$', '42'), ('\\boxed{\\text{odd}}', 'odd'), ('Answer: odd', 'odd'),
    ('The answer is odd.', 'odd'), ('**odd**', 'odd'), ('odd.', 'odd'), ('x \\in [-2,7]', '[-2,7]'),
    ('42 minutes', '42'), ('42 more', '42'), ('The farmer sold 42 eggs.', '42'), ('James has 42 apples left.', '42'),
    ("She makes $18 every day at the farmers' market.", '18'), ('The total cost is $1,234.50.', '1234.5'),
    ('42.', '42'), ('42.0', '42'), ('(42)', '42'), ('"42"', '42'), ('x=42', '42'), ('So, the answer is: 42', '42'),
    ('42 km/h', '42'), ('42 square feet', '42'), ('42 cm\xb2', '42'), ('42 cm^2', '42'), ('42\xb0', '42'),
    ('42^\\circ', '42'), ('4.2 \xd7 10^1', '42'), ('4.2e1', '42'), ('84/2', '42'), ('\\frac{84}{2}', '42'),
    ('42%', '0.42'), ('42 percent', '0.42'), ('42 percent', '42%'), ('0.42', '42%'), ('-42', '-42'),
    ('\u221242', '-42'), ('\u201342', '-42'), ('negative 42', '-42'), ('minus 42', '-42'), ('4200%', '42'),
    ('\u0664\u0662', '42'), ('\uff14\uff12', '42'), ('1,00,000', '100000'), ("1'000", '1000'), ('1_000', '1000'),
    ('$1,000,000', '1000000'), ('1 million', '1000000'), ('1.5 million dollars', '1500000'), ('$1.5M', '1500000'),
    ('3 dozen', '36'), ('42 dollars', '$42'), ('$42', '42 dollars'), ('42 USD', '$42'), ('5 km', '5 kilometers'),
    ('5 min', '5 minutes'), ('Total: 42', '42'), ('Total cost = $42', '42'), ('42 apples in total', '42'),
    ('8 and 6', '6 and 8'), ('6, 8', '6 and 8'), ('x = 6 and x = 8', '6 and 8'), ('$6$ and $8$', '6 and 8'),
    ('6 and 8', '6, 8'), ('The answers are 6 and 8.', '6 and 8'), ('{6, 8}', '6, 8'), ('\\{6, 8\\}', '6, 8'),
    ('6,8', '6, 8'), ('x=6, x=8', '6 and 8'), ('2\\frac{1}{2}', '2.5'), ('2 1/2', '2.5'), ('\\$42', '42'),
    ('42\\%', '42%'), ('42\\,000', '42000'), ('42 \\text{ km}', '42'), ('$42.00', '42'), ('She has 42 left.', '42'),
    ('There are 42 students in the class.', '42'), ('Each friend gets 42 candies.', '42'), ('42 is the answer', '42'),
    ('<b>42</b>', '42'), ('42 years old', '42'), ('He is 42 years old.', '42'), ('a total of 42', '42'),
    ('That equals 42.', '42'), ('Thus, 42', '42'), ('1 apple', '1'), ('\xbd cup', '0.5'), ('42 people', '42'),
    ('42\xa2', '42'), ('\u20ac42', '42'), ('42\u20ac', '42'), ('\xa31,000', '1000'), ('-$42', '-42'), ('$-42', '-42'),
    ('**$42**', '42'), ('**42** apples', '42'), ('- 42', '-42'), ('42\n', '42'), ('Answer:\n42', '42'),
    ('42 hours per week', '42'), ('It takes him 42 minutes.', '42'), ('It took her 42 hours', '42'),
    ('That leaves 42', '42'), ('leaving 42', '42'), ('We find x = 42', '42'), ("She'll finish in 42 days.", '42'),
    ('They sold it for $42.', '42'), ('Anna is 42.', '42'), ('The ladder is 42 feet long.', '42'),
    ('The class has 42 students.', '42'), ('Each child receives 42 sweets.', '42'), ("They'd have 42", '42'),
    ("You'll need 42 cups of flour.", '42'), ('Mia scored 42 points.', '42'), ('It lasts 42 minutes.', '42'),
    ('The area is 42 m\xb2.', '42'), ('The speed is 42 km/h.', '42'), ('I got 42', '42'), ('My answer is 42.', '42'),
    ('\u2234 42', '42'), ('\u21d2 42', '42'), ('\u2192 42', '42'), ('Ans. 42', '42'), ('Ans: 42', '42'),
    ('A: 42', '42'), ('Result: 42', '42'), ('**42** (final answer)', '42'), ('42 in all', '42'), ('exactly 42', '42'),
    ('42 of the apples', '42'), ('42 of them', '42'), ('x = \\boxed{42}', '42'), ('\\(x = 42\\)', '42'),
    ('x = 42 \\text{ meters}', '42'), ('42 min.', '42'), ('42 hrs.', '42'), ('$42 per hour', '42'),
    ('42 dollars/hour', '42'), ('42 \u20ac/month', '42'), ('42 m/s^2', '42'), ('42 m/s\xb2', '42'),
    ('42.0 \xb0C', '42'), ('It adds up to 42.', '42'), ('They earned a total of $42.', '42'),
    ('So Janet makes $42 a day.', '42'), ('Therefore, the answer is $\\boxed{42}$.', '42'),
    ('He is 42 years old', '42'), ('There were 42 people at the party.', '42'), ('the sum is 42', '42'),
    ('The perimeter is 42 cm.', '42'), ('We have 42.', '42'), ('this gives us 42', '42'),
    ('Number of eggs: 42', '42'), ('Eggs left = 42', '42'), ('42 kilometres', '42'),
    ('42 students passed the test', '42'), ('The box weighs 42 kg.', '42'), ('42 candies are left', '42'),
    ('42 candies left over', '42'), ('The train travels 42 miles in the first hour.', '42'), ('Option C', 'C'),
    ('C)', 'C'), ('C.', '(C)'), ('The correct answer is C', 'C'), ('Answer: (C)', 'C'), ('**C**', 'C'),
    ('x = 6 or x = 8', '6 and 8'), ('x\u2081 = 6, x\u2082 = 8', '6, 8'), ('x_1 = 6 and x_2 = 8', '6 and 8'),
    ('6 & 8', '6, 8'), ('6; 8', '6 and 8'), ('6 and 8.', '6 and 8'), ('The solutions are x = 6 and x = 8.', '6, 8'),
    ('$x=6$, $x=8$', '6 and 8'), ('1, 2, and 3', '3, 2, 1'), ('25%', '1/4'), ('6.02 \xd7 10^23', '6.02e23'),
    ('Yes.', 'Yes'), ('\\textbf{Yes}', 'Yes'), ('"Paris"', 'Paris'),
]
#: Texts close to the gold answer that do not state it.
NEAR_MISSES = [
    ('43', '42'), ('41', '42'), ('4.2', '42'), ('-42', '42'), ('420', '42'), ('4 2', '42'), ('42 doubled', '42'),
    ('42 permille', '42'), ('42 minus', '42'), ('42 couples', '42'), ('42 couple', '42'), ('42 pairs', '42'),
    ('42 pair', '42'), ('42 dozen', '42'), ('42 dozens', '42'), ('42 score', '42'), ('42 gross', '42'),
    ('42 hundred', '42'), ('42 hundreds', '42'), ('42 thousand', '42'), ('42 million', '42'), ('42 percent', '42'),
    ('42 per cent', '42'), ('42\u2030', '42'), ('42 bps', '42'), ('42 basis points', '42'), ('42 half', '42'),
    ('42 halves', '42'), ('42 halved', '42'), ('42 tripled', '42'), ('42 squared', '42'), ('42\xb2', '42'),
    ('42^2', '42'), ('42\xb3', '42'), ('42 cubed', '42'), ('42 less', '42'), ('42 fewer', '42'), ('42 off', '42'),
    ('42 short', '42'), ('42 negative', '42'), ('negative 42', '42'), ('minus 42', '42'), ('approx 42', '42'),
    ('approx. 42', '42'), ('approximately 42', '42'), ('about 42', '42'), ('~42', '42'), ('\u224842', '42'),
    ('\u2248 42', '42'), ('\\approx 42', '42'), ('almost 42', '42'), ('nearly 42', '42'), ('roughly 42', '42'),
    ('42 or so', '42'), ('42-ish', '42'), ('42ish', '42'), ('42?', '42'), ('42 ?', '42'), ('at least 42', '42'),
    ('not 42', '42'), ('maybe 42', '42'), ('no 42', '42'), ('No, 42', '42'), ('42 no', '42'), ('42nd', '42'),
    ('42th', '42'), ('the 42nd', '42'), ('42 + 1', '42'), ('42+', '42'), ('42-', '42'), ('42 plus', '42'),
    ('> 42', '42'), ('< 42', '42'), ('\u226542', '42'), ('\\geq 42', '42'), ('\\ge 42', '42'), ('x > 42', '42'),
    ('x \u2260 42', '42'), ('x != 42', '42'), ('\\neq 42', '42'), ('\u226042', '42'), ('42 or 43', '42'),
    ('42 and 43', '42'), ('42/43', '42'), ('42-43', '42'), ('42\u201343', '42'), ('42 to 43', '42'),
    ('between 42 and 43', '42'), ('42, 43', '42'), ('42; 43', '42'), ('42 43', '42'), ('twice 42', '42'),
    ('double 42', '42'), ('half 42', '42'), ('half of 42', '42'), ('a third of 42', '42'), ('\u221a42', '42'),
    ('\\sqrt{42}', '42'), ('42!', '42'), ('|\u221242', '42'), ('42i', '42'), ('42x', '42'), ('42 x', '42'),
    ('42\u03c0', '42'), ('log 42', '42'), ('42k', '42'), ('42K', '42'), ('42M', '42'), ('42B', '42'), ('42 k', '42'),
    ('42 M', '42'), ('42m illion', '42'), ('42 mil', '42'), ('42 lakh', '42'), ('42 crore', '42'), ('42 grand', '42'),
    ('42 factorial', '42'), ('42 mod 5', '42'), ('42 base 8', '42'), ('0x42', '42'), ('42_8', '42'),
    ('42 in hex', '42'), ('42 tenths', '42'), ('42 hundredths', '42'), ('42 thirds', '42'), ('42 quarters', '42'),
    ('42 and a half', '42'), ('42 and one half', '42'), ('42\xbd', '42'), ('42 1/2', '42'), ('42.5', '42'),
    ('42,5', '42'), ('42.42', '42'), ('042.1', '42'), ('42..', '42'), ('42...', '42'), ('42\u2026', '42'),
    ('42 thousandths', '42'), ('I think 42', '42'), ('I guess it is 42', '42'), ('It might be 42', '42'),
    ('It may be 42', '42'), ('It could be 42', '42'), ('Possibly 42', '42'), ('probably 42', '42'),
    ('It is probably 42', '42'), ('around 42', '42'), ('over 42', '42'), ('under 42', '42'), ('more than 42', '42'),
    ('less than 42', '42'), ('up to 42', '42'), ('as many as 42', '42'), ('no more than 42', '42'),
    ('fewer than 42', '42'), ('42 at most', '42'), ('42 at least', '42'), ('at most 42', '42'),
    ('a maximum of 42', '42'), ('42 max', '42'), ('42 minimum', '42'), ('wrong: 42', '42'), ('42 is wrong', '42'),
    ('42 is not right', '42'), ('42 (wrong)', '42'), ('not 42 but 43', '42'), ('anything but 42', '42'),
    ('everything except 42', '42'), ('other than 42', '42'), ("It isn't 42", '42'), ("It's not 42", '42'),
    ('isn\u2019t 42', '42'), ("can't be 42", '42'), ('42 more than', '42'), ('42 more than Bob', '42'),
    ('42 less than 50', '42'), ('42 times more', '42'), ('42 times 2', '42'), ('42 times two', '42'),
    ('42 times the price', '42'), ('2 times 42', '42'), ('42 divided by 2', '42'), ('42 multiplied by itself', '42'),
    ('42 increased by one', '42'), ('42 reduced', '42'), ('42 rounded', '42'), ('42 (rounded)', '42'),
    ('42 approx', '42'), ('42 approx.', '42'), ('42 approximately', '42'), ('42 estimated', '42'),
    ('42, approximately', '42'), ('42 a.m.', '42'), ('42 AM', '42'), ('42 pm', '42'), ('42 BC', '42'),
    ('10 to the 42', '42'), ('42:00', '42'), ('42 myriad', '42'), ('42 quadrupled', '42'), ('42 reciprocal', '42'),
    ('42 inverse', '42'), ('42 shy', '42'), ('42 trios', '42'), ('42 duos', '42'), ('42 minutes short', '42'),
    ('42 apples doubled', '42'), ('42 dollars off', '42'), ('42 dollars less', '42'), ('42 dollars minus tax', '42'),
    ('42 in debt', '42'), ('a loss of 42', '42'), ('42 below zero', '42'), ('42 degrees below zero', '42'),
    ('42 under', '42'), ('42 unless', '42'), ('if 42', '42'), ('42 if lucky', '42'), ('42 unknown', '42'),
    ('~~42~~', '42'), ('\\cancel{42}', '42'), ('\\not 42', '42'), ('\xb142', '42'), ('\\pm 42', '42'),
    ('42\xb11', '42'), ('42 \xb1 1', '42'), ('42 give or take', '42'), ('42 plus or minus', '42'),
    ('42 more or less', '42'), ('42 to 1', '42'), ('42:1', '42'), ('forty-two', '42'), ('the opposite of 42', '42'),
    ('opposite: 42', '42'), ('-(42)', '42'), ('1/42', '42'), ('42^{-1}', '42'), ('42^{2}', '42'), ('10^42', '42'),
    ('e^42', '42'), ('42 dozen eggs', '42'), ('42 pairs of shoes', '42'), ('42 couples of eggs', '42'),
    ('42 twins?', '42'), ('some 42', '42'), ('a few 42', '42'), ('42 something', '42'), ('42 odd', '42'),
    ('42-odd', '42'), ('42 and counting', '42'), ('42 and change', '42'), ('42 and then some', '42'),
    ('42 and more', '42'), ('42 or more', '42'), ('42 or less', '42'), ('or 42', '42'), ('42 each way?', '42'),
    ('Nobody has 42', '42'), ('None: 42', '42'), ('unsure: 42', '42'), ('guess: 42', '42'), ('estimate: 42', '42'),
    ('42 * 2', '42'), ('42*2', '42'), ('2*42', '42'), ('42 \xb7 2', '42'), ('42 \\times 2', '42'),
    ('42 \\cdot 10', '42'), ('42 = 43', '42'), ('41 = 42', '42'), ('43 = 42', '42'), ('42 \\text{ doubled}', '42'),
    ('42\\text{ dozen}', '42'), ('42 \\text{ hundred}', '42'), ('\\text{not }42', '42'), ('42 \\text{ or } 43', '42'),
    ('0.42', '42'), ('42e1', '42'), ('42e-1', '42'), ('4,2', '42'), ('4.2.', '42'), ('42%%', '42'), ('42 %o', '42'),
    ('42 ppm', '42'), ('42 \u2031', '42'), ('42 pct', '42'), ('42 per hundred', '42'), ('42 per mille', '42'),
    ('42 in base ten?', '42'), ('42 trillionths', '42'), ('42 kilo-', '42'), ('IDK 42', '42'), ('42 lol jk', '42'),
    ('just kidding: 42', '42'), ('42 is too high', '42'), ('42 is too low', '42'), ('42 is close', '42'),
    ('42 is a lie', '42'), ('42 was wrong', '42'), ('42 is one option', '42'), ('42 \u4e07', '42'),
    ('42\u767e', '42'), ('42 \u500d', '42'), ('\u56db\u5341\u4e8c', '42'), ('answer is unlike 42', '42'),
    ('far from 42', '42'), ('close to 42', '42'), ('near 42', '42'), ('The square of it is 42', '42'),
    ('Half of it is 42', '42'), ('Its double is 42', '42'), ('minimum 42', '42'), ('exceeds 42', '42'),
    ('It exceeds 42', '42'), ('subtract 42', '42'), ('add 42', '42'), ('multiply by 42', '42'), ('Q42', '42'),
    ('A42', '42'), ('#42', '42'), ('No. 42', '42'), ('42A', '42'), ('v42', '42'), ('Chapter 42', '42'),
    ('Route 42', '42'), ('question 42', '42'), ('it is 42 or it is not', '42'), ('42 as an estimate', '42'),
    ('42 as a guess', '42'), ('42 for sure not', '42'), ('42 cups less', '42'), ('42 miles squared', '42'),
    ('42 to the power of two', '42'), ('42 to the second power', '42'), ('42 raised to two', '42'),
    ('42 apples and a half', '42'), ('42 apples and some', '42'), ('42 hours and a half', '42'),
    ('42 before tax', '42'), ('42 after tax', '42'), ('42 dollars before tax', '42'), ('$42 zillion', '42'),
    ('$42 MM', '42'), ('42 quartets', '42'), ('42 Gs', '42'), ('is it 42', '42'), ('Is it 42', '42'),
    ('Example: 42', '42'), ('I reckon 42', '42'), ("I reckon it's 42", '42'), ('Bob says it is 42', '42'),
    ("I hope it's 42", '42'), ('42 six-packs', '42'), ('42 groups of ten', '42'), ('42 backwards', '42'),
    ('42 reversed', '42'), ('starts at $42', '42'), ('capped at $42', '42'), ('42-fold', '42'), ('42fold', '42'),
    ('42\u2032', '42'), ('42\u2081\u2080', '42'), ('42\u2020', '42'), ('42 = x + 1', '42'), ('[42, 43]', '42'),
    ('(42, \u221e)', '42'), ('[42, \u221e)', '42'), ('42 %ile', '42'), ('42 to be confirmed', '42'),
    ('42 provisional', '42'), ('42 preliminary', '42'), ('42 speculative', '42'), ('42 plausible', '42'),
    ('42 supposedly', '42'), ('42 apples supposedly', '42'), ('42 apples, I think', '42'),
    ('The price exceeds $42.', '42'), ('It exceeds 42 dollars.', '42'), ('The answer approaches 42.', '42'),
    ('in 42', '42'), ('for 42', '42'), ('by 42', '42'), ('to 42', '42'), ('from 42', '42'), ('with 42', '42'),
    ('after 42', '42'), ('than 42', '42'), ('past 42', '42'), ('beyond 42', '42'), ('below 42', '42'),
    ('42 away from it', '42'), ('42 or thereabouts', '42'), ('42 thereabouts', '42'), ('42 and a bit', '42'),
    ('42 and a third', '42'), ('42 plus a bit', '42'), ('42 plus tax', '42'), ('42 minus tip', '42'),
    ('42 times over', '42'), ('42 sets of two', '42'), ('42 hundredweight', '42'), ('42 million dollars', '42'),
    ('42 dollars million', '42'), ('42 billionths', '42'), ('42 K', '42'), ('42 thou', '42'), ('42 G', '42'),
    ('42 hundred dollars', '42'), ('42 dozen dollars', '42'), ('42 dollars squared', '42'),
    ('42 dollars halved', '42'), ('42 dollars quartered', '42'), ('42 apples split in two', '42'),
    ('42 apples cut in half', '42'), ('42 dollars divided', '42'), ('42 split', '42'), ('42 quartered', '42'),
    ('42 decimated', '42'), ('42 hexadecimal', '42'), ('42 octal', '42'), ('42 binary', '42'), ('42 radians?', '42'),
    ('twenty 42', '42'), ('one 42', '42'), ('It is not true that it is 42', '42'),
    ('It is false that it is 42', '42'), ('It was never 42', '42'), ('No one has 42', '42'), ('Nobody got 42', '42'),
    ('none of the 42', '42'), ('except for 42', '42'), ('42 except on Sundays', '42'), ('42 unless it rains', '42'),
    ('only if 42', '42'), ('42 only if it rains', '42'), ('42 provided it rains', '42'),
    ('42 dollars if it rains', '42'), ('42 in theory?', '42'), ('42 at the most', '42'), ('42 tops', '42'),
    ('42 max.', '42'), ('max 42', '42'), ('min. 42', '42'), ('minimum of 42', '42'), ('maximum: 42', '42'),
    ('upper bound: 42', '42'), ('lower bound: 42', '42'), ('bounded by 42', '42'), ('42 as upper bound', '42'),
    ('no less than 42', '42'), ('not less than 42', '42'), ('not 42 exactly', '42'), ('not exactly 42', '42'),
    ('inexactly 42', '42'), ('hardly 42', '42'), ('42 hardly', '42'), ('barely 42', '42'), ('scarcely 42', '42'),
    ('just under 42', '42'), ('just over 42', '42'), ('just about 42', '42'), ('just shy of 42', '42'),
    ('42 just about', '42'), ('a little over 42', '42'), ('slightly more than 42', '42'), ('42ish minutes', '42'),
    ('42-ish minutes', '42'), ('circa 42', '42'), ('c. 42', '42'), ('ca. 42', '42'), ('around 42 minutes', '42'),
    ('about 42 minutes', '42'), ('It takes about 42 minutes.', '42'), ('It takes almost 42 minutes.', '42'),
    ('It takes less than 42 minutes.', '42'), ('It does not take 42 minutes.', '42'),
    ('It never takes 42 minutes.', '42'), ('He needs 42 fewer.', '42'), ('He needs 42 less.', '42'),
    ('He needs 42 more than Bob.', '42'), ('He needs 42 more or less.', '42'), ('Few need 42', '42'),
    ('It takes up to 42 minutes.', '42'), ('It takes 42 minutes or so.', '42'), ('It takes 42 minutes, maybe.', '42'),
    ('It takes 42 minutes?', '42'), ('It takes 42 to 45 minutes.', '42'), ('It takes 42 minutes plus a break.', '42'),
    ('42 (approx)', '42'), ('42 (estimate)', '42'), ('42 (maybe)', '42'), ('42 (or 43)', '42'),
    ('42 (not sure)', '42'), ('42 (incorrect)', '42'), ('42 (?)', '42'), ('(42?)', '42'), ('(not 42)', '42'),
    ('**not** 42', '42'), ('not **42**', '42'), ('**~42**', '42'), ('`>42`', '42'), ('$\\approx 42$', '42'),
    ('$>42$', '42'), ('$\\pm42$', '42'), ('$42^2$', '42'), ('$42!$', '42'), ('$-42$', '42'),
    ('$\\frac{1}{42}$', '42'), ('$42\\%$ off', '42'), ('42% off', '42'), ('42 % off', '42'), ('42% less', '42'),
    ('42% of 100', '42'), ('6 or 8', '6 and 8'), ('6 or 8 maybe', '6 and 8'), ('between 6 and 8', '6 and 8'),
    ('6', '6 and 8'), ('6, 8, 9', '6 and 8'), ('6 and 6', '6 and 8'), ('6 and not 8', '6 and 8'),
    ('not 6 and 8', '6 and 8'), ('6 and 8?', '6 and 8'), ('6-8', '6 and 8'), ('6 to 8', '6 and 8'),
    ('6 and 9', '6 and 8'), ('-6 and 8', '6 and 8'), ('6 and 8 are wrong', '6 and 8'), ('6 and about 8', '6 and 8'),
    ('neither 6 nor 8', '6 and 8'), ('6 and 8 doubled', '6 and 8'), ('68', '6 and 8'), ('6.8', '6, 8'),
    ('6 8', '6 and 8'), ('x = 6 and x \u2260 8', '6 and 8'), ('x > 6 and x = 8', '6 and 8'), ('not C', 'C'),
    ('C?', 'C'), ('C or D', 'C'), ('C, D', 'C'), ('maybe C', 'C'), ('~C', 'C'), ('C is wrong', 'C'), ('c', 'C'),
    ('CC', 'C'), ('odd?', 'odd'), ('not odd', 'odd'), ('odd or even', 'odd'), ('oddish', 'odd'),
    ('probably odd', 'odd'), ('The answer is not odd', 'odd'), ('even', 'odd'), ('C++', 'C'), ('-C', 'C'),
]
#: Written by a reader who knew the rule and had not seen the parser.
READER_RIGHT = [
    ('**42**', '42'), ('$\\boxed{\\frac{3}{4}}$', '3/4'), ('\\boxed{136}', '136'), ('$1,250', '1250'),
    ('1\u202f250 \u20ac', '1250'), ('\xa318.50', '18.5'), ('\u20b91,20,000', '120000'), ('\\$64', '64'),
    ('\xa53,500', '3500'), ('Maria earns $460 per week.', '460'), ('She has 15 apples left.', '15'),
    ('There are 24 students in the class.', '24'), ('The total cost is **$1,080.00**.', '1080'), ('x = 7', '7'),
    ('$x = -\\frac{5}{2}$', '-2.5'), ('$$n = 2024$$', '2024'), ('\\( \\dfrac{7}{12} \\)', '7/12'),
    ('\\[ 3\\sqrt{2} \\]', '3\\sqrt{2}'), ('\u22128', '-8'), ('\xbe', '0.75'), ('2 1/2', '2.5'),
    ('2\\frac{1}{3}', '7/3'), ('12{,}500', '12500'), ('10\\,000', '10000'), ("CHF 3'600", '3600'),
    ('x = 2 and x = 3', '2 and 3'), ('\\{6, 8\\}', '6 and 8'), ('9, 4', '4, 9'),
    ('\\left( 3, \\frac{\\pi}{2} \\right)', '\\left(3,\\frac{\\pi}{2}\\right)'), ('$(2, -5)$', '(2,-5)'),
    ('\\left[-2, 7\\right]', '[-2,7]'), ('(C)', 'C'), ('\\text{(B)}', 'B'), ('The answer is **A**.', 'A'),
    ('`odd`', 'odd'), ('\\text{even}', 'even'), ('25\\%', '25%'), ('12.5 percent', '12.5%'), ('90^\\circ', '90'),
    ('5\\text{ cm}', '5 cm'), ('36 square inches', '36'), ('15.0', '15'), ('Answer: 96', '96'),
    ('0.5', ['1/2', 'one half']), ('7 hours', ['7', '7 hours']),
]
READER_NEAR_MISSES = [
    ('5 dozen', '5'), ('3 thousand', '3'), ('$7 million', '7'), ('40 percent', '40'), ('12 squared', '12'),
    ('9 tripled', '9'), ('half of 18', '18'), ('twice 15', '15'), ('3 tenths', '3'), ('No fewer than 20', '20'),
    ('12 or more', '12'), ('up to 35 people', '35'), ('roughly 60', '60'), ('Almost 80 miles', '80'),
    ('\u2248 2.5', '2.5'), ('$40 or so', '40'), ('18, give or take', '18'), ('The answer is not 16.', '16'),
    ("It can't be 27.", '27'), ('Anything but D', 'D'), ('not even', 'even'), ('24?', '24'), ('Perhaps 30', '30'),
    ('It might be 11 days.', '11'), ('Not sure, but my guess is 33', '33'), ('8 or 9', '8'), ('Either B or C', 'B'),
    ('14, or possibly 16', '14'), ('between 10 and 12', '12'), ('x > 5', '5'), ('less than 100', '100'),
    ('\u2260 9', '9'), ('\xb16', '6'), ('0.67', '2/3'), ('3.14', '\\pi'), ('5 km', '5 miles'),
    ('30 seconds', '30 minutes'), ('6', '6 and 8'), ('6, 8 and 10', '6 and 8'), ('-7', '7'), ('3x', '3'),
    ('\\sqrt{49}', '49'), ('15 - 3', '15'), ('[2, 5)', '[2, 5]'), ('about 6', ['6', 'six']),
]
# fmt: on


@pytest.mark.parametrize(("said", "gold"), RIGHT + READER_RIGHT + reader_answers.RIGHT)
def test_a_right_answer_as_people_write_it(said, gold):
    assert same_answer(said, gold)


@pytest.mark.parametrize(("said", "gold"), NEAR_MISSES + READER_NEAR_MISSES + reader_answers.NEAR_MISSES)
def test_a_near_miss_is_not_paid(said, gold):
    assert not same_answer(said, gold)


def test_any_of_several_gold_answers_is_right():
    texts = ["<answer>6</answer>", "<answer>8.0</answer>", "<answer>7</answer>", "<answer>6 or 8</answer>"]
    assert correctness_reward(texts, answer=[["6", "8"]] * 4) == [1.0, 1.0, 0.0, 0.0]
    assert exact_reward(texts, answer=[("6", "8")] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert is_strictly_right("<reasoning>a</reasoning><answer>8</answer>", [6, 8])
    assert not same_answer("", ["", None]) and not same_answer("None", [None])


class _Missing:
    """As pandas.NA: comparing it gives no truth value."""

    def __ne__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    def __str__(self):
        return "<NA>"


def test_a_gold_answer_of_any_type_raises_nothing():
    golds = [10**5000, float("nan"), _Missing(), b"42", {"a": 1}, [], [None, "42"], True, "\ud800", "\0", 42, None]
    scores = correctness_reward(["<answer>42</answer>"] * len(golds), answer=golds)
    assert scores == [0.0, None, None, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, None]


RUNS = [*"1.,-([{$*_`a~+& ", "1,", "\\text{", "\\frac", "</b>", "a ", "1 ", "a and "]
READERS = [parse_number, lambda text: same_fact(text, "Paris"), lambda text: same_answer(text, "odd one")]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("tail", ["#42", "42#", "x", " or so"])
def test_a_run_of_one_character_costs_milliseconds_at_any_length(run, tail):
    for count in (24, 60, 190, 2_000, 100_000):
        for read in READERS:
            started = time.process_time()
            read(run * count + tail)
            read("42" + run * count + tail)
            assert time.process_time() - started < 0.1, (run, count)


MARKS = ".,-+(){}[]$%\\^/*_`~!?:;=<>#'\"&|\n\u00a0\u202f\u200b\ud800\0 \u20ac\u00bd\u00b2\u0663\uff17\u2212\u00e9\u0130"
TOKENS = (
    r"<answer> </answer> <reasoning> </reasoning> 1 3 7 0 ** \frac \boxed{ \text{ \mathbf{ \, \left( and or not the"
)
TOKENS += " answer is x C odd apples minutes percent It takes half Rs. USD e5 10^ /0"
PIECES = [*MARKS, *TOKENS.split()]
PAYERS = ((correctness_reward, "42"), (exact_reward, "42"), (fuzzy_reward, "Paris"))


def hostile(rng: random.Random) -> str:
    body = "".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 30)))
    return body if rng.random() < 0.2 else f"<answer>{body}</answer>"


def test_hostile_completions_raise_nothing_and_earn_nothing(monkeypatch):
    monkeypatch.setattr("grpo_utils.rewards.correctness.same_expression", lambda said, gold: False)  # has its own test
    rng, slowest = random.Random(0), 0.0
    for text in (hostile(rng) for _ in range(20_000)):
        for reward, gold in PAYERS:
            started = time.thread_time()
            assert reward([text], answer=[gold]) == [0.0], text
            slowest = max(slowest, time.thread_time() - started)
    assert slowest < 0.1  # 20 ms on a quiet machine; a collection of garbage may fall into one


#: A calculation within a GSM8K solution, with its result.
CALCULATION = re.compile(r"<<[^<>]*=([^<>=]*)>>")


def calculated(records: list[dict]) -> list[tuple[str, str]]:
    """What real solutions write behind the last "=" of a line, where the result is the only number; and the result."""
    lines = [line for record in records for line in record["answer"].split("\n") if CALCULATION.search(line)]
    pairs = [(CALCULATION.sub("", line).rpartition("=")[2].strip(), CALCULATION.findall(line)[-1]) for line in lines]
    return [(said, gold) for said, gold in pairs if _numbers(said) == _numbers(gold)]


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "").rstrip(".")) for number in re.findall(r"[0-9][0-9,]*\.?[0-9]*", text)]


def test_real_sentences_behind_an_equals_sign_are_read(gsm8k_records):
    pairs = calculated(gsm8k_records)
    assert len(pairs) > 4_000
    assert sum(same_answer(said, gold) for said, gold in pairs) / len(pairs) > 0.93
    others = [(said, other) for (said, gold), (_, other) in pairwise(pairs) if gold != other]
    paid = [(said, other) for said, other in others if same_answer(said, other) and "dozen" not in said]  # is 12 times
    assert [pair for pair in paid if _numbers(pair[0]) != _numbers(pair[1])] == []


def test_all_gsm8k_labels_are_right_and_the_next_rows_wrong(gsm8k_records):
    labels = [record["answer"].split("#### ")[1] for record in gsm8k_records]
    reward = AnswerReward(extract=extract_all)
    assert reward(labels, answer=[label.replace(",", "") for label in labels]) == [1.0] * len(labels)
    pairs = [(a, b) for a, b in pairwise(labels) if a != b]
    assert not sum(reward([a for a, _ in pairs], answer=[b for _, b in pairs]))


def test_dots_in_a_calculation_raise_nothing():
    texts = ["1 + 2 + ... + 8 = 36", "... = 36", "36 = ... = 36", "1..2 = 36", "(((((36 = 36", "1/0 = 36"]
    assert correctness_reward([f"<answer>{text}</answer>" for text in texts], answer=["36"] * 6) == [0.0] * 6


def test_a_calculation_is_exact():
    assert same_answer("0.1 + 0.2 = 0.3", "0.3") and not same_answer("1.0000000000000000001 = 1", "1")


def test_values_of_two_unknowns_are_not_swapped():
    assert same_answer("y = 8, x = 6", "x = 6, y = 8") and same_answer("6 and 8", "x = 6, y = 8")
    assert not same_answer("x = 8, y = 6", "x = 6, y = 8") and not same_answer("8 and 6", "x = 6, y = 8")


@pytest.mark.parametrize(
    ("said", "gold"), [("√4.5", "1"), ("A", "A'"), ("$5 a day", "$5 a week"), ("5 miles a day", "5 miles a week")]
)
def test_what_an_answer_adds_is_not_dropped(said, gold):
    assert not same_answer(said, gold)
