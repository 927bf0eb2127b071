"""Expressions of competition mathematics: what was the same answer stays the same, and what was not stays different."""

import pytest

from grpo_utils.rewards import same_answer

EQUAL = [
    (r"\dfrac{x}{2}", r"\frac{1}{2}x"),
    (r"\frac{a+b}{2}", r"\frac{a}{2}+\frac{b}{2}"),
    (r"\frac{x^2-1}{x-1}", "x+1"),
    (r"\frac{2}{3}\pi", r"\frac{2\pi}{3}"),
    ("x/2+x/3", "5x/6"),
    (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    (r"\frac{1}{\sqrt{3}-1}", r"\frac{\sqrt{3}+1}{2}"),
    (r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}"),
    (r"\frac{\sqrt{3}}{2}", r"\sqrt{\frac{3}{4}}"),
    (r"\frac{-1+\sqrt{5}}{2}", r"\frac{\sqrt{5}-1}{2}"),
    (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"),
    (r"(1+\sqrt{2})^2", r"3+2\sqrt{2}"),
    (r"4\pi", r"\pi\cdot 4"),
    (r"\pi r^2", r"r^2\pi"),
    (r"12+6\pi", r"6(2+\pi)"),
    (r"\pi^2/6", r"\frac{\pi^2}{6}"),
    (r"\frac{16\pi\sqrt{3}}{9}", r"\frac{16\sqrt{3}\pi}{9}"),
    (r"\left(\frac{\pi}{3}\right)^2", r"\frac{\pi^2}{9}"),
    ("(1, 2)", "(1,2)"),
    (r"\left(\frac{1}{2}, 3\right)", "(0.5, 3)"),
    (r"(\sqrt{4}, -1)", "(2,-1)"),
    (r"\left(-\frac{2}{4}, \frac{\sqrt{12}}{2}\right)", r"\left(-\frac{1}{2}, \sqrt{3}\right)"),
    ("(x+x, 3)", "(2x, 3)"),
    ("[0, 1)", r"\left[0,1\right)"),
    (r"(-\infty, 3]", r"(-\infty,3]"),
    (r"(0,\infty)", r"(0, +\infty)"),
    (r"(-\infty,0)\cup(0,\infty)", r"(-\infty, 0) \cup (0, \infty)"),
    (r"[1,2]\cup[3,4]", r"[3,4]\cup[1,2]"),
    (r"\left[-\sqrt{4},\frac{6}{2}\right)", "[-2,3)"),
    (r"\{1, 2, 3\}", r"\{3, 1, 2\}"),
    (r"\{-1, \frac{1}{2}\}", r"\{0.5, -1\}"),
    (r"\{\sqrt{9}, 2\}", r"\{2, 3\}"),
    (r"\{x\}", r"\{ x \}"),
    (r"\left\{1,2\right\}", r"\{2,1\}"),
    (r"\{x, 2x\}", r"\{2x, x\}"),
    ("1, 2", r"\{1, 2\}"),
    ("1,-2", "1, -2"),
    ("x^2-y^2", "(x-y)(x+y)"),
    ("(x-1)(x^2+x+1)", "x^3-1"),
    ("(a+b)^3", "(a+b)(a+b)(a+b)"),
    ("(x+2)^4", "((x+2)^2)^2"),
    ("-x^2+4x-3", "-(x-1)(x-3)"),
    ("n(n+1)/2", r"\frac{n^2+n}{2}"),
    (r"\frac{n(n+1)(2n+1)}{6}", r"\frac{2n^3+3n^2+n}{6}"),
    ("x+y+z", "z+y+x"),
    (r"\alpha+\beta", r"\beta+\alpha"),
    ("x^{-1}", r"\frac{1}{x}"),
    (r"2^n \cdot 2", "2^{n}+2^{n}"),
    ("5^{20}", "25^{10}"),
    ("2^{99}-1", "-1+2^{99}"),
    ("e^2", "e^{2}"),
    ("(x^2)^3", "x^6"),
    (r"\frac{3+\sqrt{5}}{2}", r"1.5+\frac{\sqrt{5}}{2}"),
    (r"2\pm\sqrt{3}", r"2 \pm \sqrt{3}"),
    (r"\frac{\sqrt{3}}{4}\cdot 6^2", r"9\sqrt{3}"),
    (r"x = \frac{-b}{2a}", r"-\frac{b}{2a}"),
    (r"x\in[1,2]", r"x\in[1,2]"),
    ("|x-1|", "|1-x|"),
    ("3 + 4i", "4i+3"),
    (r"\left(\frac{a+b}{c}\right)^2", r"\frac{(a+b)^2}{c^2}"),
    (r"\sqrt{1+\sqrt{1+\sqrt{1}}}", r"\sqrt{1+\sqrt{2}}"),
    (r"\left(\left(x+1\right)^2+1\right)^2", "(x^2+2x+2)^2"),
    (r"\frac{\frac{\sqrt{3}}{2}}{\frac{1}{2}}", r"\sqrt{3}"),
    ("2(3(x+1)+2)", "6x+10"),
    (r"\{(1,2),(3,4)\}", r"\{(3,4),(1,2)\}"),
    ("(1,2),(3,4)", "(1,2), (3,4)"),
    (r"\frac{1}{8}", "0.125"),
    (r"4\times 10^{-3}\pi", r"\frac{\pi}{250}"),
]
DIFFERENT = [
    (r"\frac{1}{2}", r"\frac{1}{3}"),
    (r"\frac{2}{3}\pi", r"\frac{3}{2}\pi"),
    (r"\frac{a}{b}", r"\frac{b}{a}"),
    (r"\frac{x+1}{2}", r"x+\frac{1}{2}"),
    (r"\sqrt{2}", "1.414"),
    (r"\sqrt[3]{8}", r"\sqrt{8}"),
    (r"2\sqrt{3}", r"3\sqrt{2}"),
    (r"\sqrt{a+b}", r"\sqrt{a}+\sqrt{b}"),
    (r"1+\sqrt{2}", r"1-\sqrt{2}"),
    (r"2\pi", r"\pi^2"),
    (r"\pi r^2", r"2\pi r"),
    ("(1,2)", "(2,1)"),
    ("(1,2)", "(1,2,3)"),
    ("(1,2)", "[1,2]"),
    ("[0,1)", "[0,1]"),
    ("[0,1]", "(0,1)"),
    (r"(-\infty,3)", r"(-\infty,3]"),
    (r"[1,2]\cup[3,4]", "[1,4]"),
    (r"\{1,2\}", r"\{1,2,3\}"),
    (r"\{1,2\}", r"\{1,3\}"),
    (r"\{1,2\}", "3"),
    ("1,-2", "-2,1"),
    ("x^2", "2x"),
    ("(x-1)(x+2)", "(x+1)(x-2)"),
    ("x", "y"),
    ("x^2-1", "1-x^2"),
    ("a+b", "ab"),
    ("(a+b)^2", "a^2+b^2"),
    ("2^{10}", "10^2"),
    ("x^{-1}", "-x"),
    ("2^n", "n^2"),
    ("3^{20}", "3^{21}"),
    ("2+3i", "2-3i"),
    ("|x|", "x"),
    ("x<3", "x>3"),
    ("x<3", r"x\in(0,3)"),
    (r"2\sqrt{3}+1", r"2\sqrt{3+1}"),
    (r"-\frac{1}{4}\pi", r"\frac{\pi}{4}"),
    ("2^{99}", "2^{99}+1"),
]

#: The gold answer is a number, so the answer must be one too, and not an expression that is still to be worked out.
UNWORKED = [
    (r"\frac{1}{\frac{2}{3}}", r"\frac{3}{2}"),
    (r"\frac{1}{1+\frac{1}{2}}", r"\frac{2}{3}"),
    (r"3\frac{1}{2}\cdot 2", "7"),
    (r"\sqrt[3]{27}", "3"),
    (r"\sqrt{3}\cdot\sqrt{12}", "6"),
    ("2^{-3}", r"\frac{1}{8}"),
    ("3^4", "81"),
    (r"\$3\sqrt{4}", "6"),
    (r"1-\frac{1}{2^{10}}", r"\frac{1023}{1024}"),
    (r"\tfrac{5}{10}", r"\frac12"),
    (r"\frac{6}{4}", r"\frac{3}{2}"),
]


@pytest.mark.parametrize(("said", "gold"), EQUAL)
def test_two_ways_to_write_an_expression_are_the_same_answer(said, gold):
    assert same_answer(said, gold) and same_answer(gold, said)


@pytest.mark.parametrize(("said", "gold"), DIFFERENT)
def test_expressions_that_differ_are_different_answers(said, gold):
    assert not same_answer(said, gold) and not same_answer(gold, said)


@pytest.mark.parametrize(("said", "number"), UNWORKED)
def test_an_expression_is_not_the_number_that_it_evaluates_to(said, number):
    assert not same_answer(said, number) and same_answer(number, said)
