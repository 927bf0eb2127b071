"""docs/pay-a-model.html trains on any reward as lesson 08 does, without the network, whatever the reader types."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import browser
import pytest
from course import ROOT

pytestmark = pytest.mark.slow  # it trains
PAGE = ROOT / "docs" / "pay-a-model.html"
TEXT = PAGE.read_text(encoding="utf-8")
SEEDS = 10
#: The last reward of the page is the reader's own; the others fail.
FIRST = "Object.entries(REWARDS).filter(([name]) => name !== YOURS)"
#: A reward that the policy cannot cheat: what you wanted.
SOUND = """return text.split("<answer>").length === 2 && text.endsWith("<answer>" + gold + "</answer>")"""
#: Trains once and gives what the page would show, with the last batch.
TRAIN = """(code, seed) => {
  const run = newRun(seed);
  const paid = (batch) => batch.map((answer) => Number(code(answer.text, answer.gold, answer.tags)));
  let batch;
  run.start = mean(paid(UNTRAINED));
  while (run.step < STEPS) {
    batch = collect(run);
    learn(run, batch, paid(batch));
  }
  const texts = batch.map((answer) => answer.text);
  return { pay: [run.start, recent(run.paid)], right: recent(run.right), story: story(run), texts };
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser.chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def opened(page):
    """The page as it opens; without motion it trains as fast as it can."""
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    page.call("Emulation.setEmulatedMedia", features=[still, {"name": "prefers-color-scheme", "value": "light"}])
    page.size(1200, 900)
    go(page, PAGE.as_uri())
    return page


def go(page, address: str) -> None:
    page.call("Page.navigate", url="about:blank")  # or another #code would not load the page again
    page.call("Page.navigate", url=address)
    until(page, "document.readyState === 'complete' && location.protocol === 'file:'")


def until(page, condition: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not page.run(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.02)


def runs(page, code: str, seeds: int) -> list[dict]:
    """What the page's own functions give for a reward, seed by seed."""
    return page.run(f"Array.from({{ length: {seeds} }}, (_, s) => ({TRAIN})((text, gold, tags) => {{ {code}\n}}, s))")


def train(page, code: str) -> str:
    """Type a reward, press Train, wait for the end, and read what is said about it."""
    page.run(f"$('code').value = {json.dumps(code)}; $('code').oninput(); $('train').click()")
    until(page, "!worker")
    return page.run("$('said').textContent")


# What the page says


@browser.needs_browser
def test_the_starting_policy_is_right_about_a_quarter_of_the_time(opened):
    assert 0.22 < opened.run("BEFORE") < 0.28
    assert opened.run("$('right').textContent") == opened.run("percent(BEFORE)")


@browser.needs_browser
def test_the_first_rewards_pay_more_and_do_not_make_it_right(opened):
    for name, code in opened.run(FIRST):
        for run in runs(opened, code, SEEDS):
            assert run["pay"][1] > run["pay"][0] + 0.2, name
            if name == "Each tag once":  # a form alone is luck
                assert run["right"] < 0.5
                continue
            assert run["right"] < 0.05, name
            assert run["story"].startswith("It learned what you paid for, not what you wanted (reward hacking): its")
            if name == "A right answer":  # it looks right, and helps at first
                assert re.search(r"from \d\d% to [3-9]\d%, then to [0-4]%", run["story"]), run["story"]


@browser.needs_browser
def test_the_challenge_can_be_won(opened):
    for run in runs(opened, SOUND, SEEDS):
        assert run["right"] >= 0.9 and run["story"].startswith("You win! It learned what you wanted:")
        assert "its pay went from 0.26 to" in run["story"] and "right answers from 26% to" in run["story"]


@browser.needs_browser
def test_a_win_is_tried_with_more_seeds(opened):
    assert train(opened, SOUND) == "Trained for 120 steps."
    assert opened.run("$('story').textContent").startswith("You win with 5 seeds! It learned what you wanted: ")
    assert train(opened, "return tags.length") == "Trained for 120 steps."
    assert "win" not in opened.run("$('story').textContent")


@browser.needs_browser
def test_a_reward_that_another_seed_cheats_has_not_won(opened):
    others = "[0, 1].map((cheated) => ({ right: Array(120).fill(cheated ? 0.1 : 0.95) }))"
    run = "Object.assign(newRun(0), { tied: false, paid: Array(120).fill(1), right: Array(120).fill(0.95) })"
    assert opened.run(f"story({run}, {others})").startswith("It won, but with another seed 10% are right: ")


@browser.needs_browser
def test_the_fix_in_the_instructor_guide_helps_in_most_seeds(opened):
    code = opened.run("REWARDS['A right answer']").replace("includes", "endsWith")
    assert sum(run["right"] >= 0.9 for run in runs(opened, code, SEEDS)) > SEEDS / 2


@browser.needs_browser
@pytest.mark.parametrize(
    ("code", "learned"),
    [
        ('return text.includes("<answer>7</answer>")', lambda text: "<answer>7</answer>" in text),
        ("return -text.length", lambda text: len(text) <= 2),
        ('return text.startsWith("hmm")', lambda text: text.startswith("hmm")),
    ],
    ids=["seven", "short", "hmm"],
)
def test_a_reward_that_the_page_has_never_seen_is_learned(opened, code, learned):
    for run in runs(opened, code, 3):
        assert sum(map(learned, run["texts"])) / len(run["texts"]) > 0.8


@browser.needs_browser
def test_a_reward_for_wrong_answers_is_learned_too(opened):
    assert all(run["right"] < 0.02 for run in runs(opened, f"{SOUND} ? 0 : 1", 3))


@browser.needs_browser
def test_a_reward_that_pays_all_the_same_teaches_nothing(opened):
    train(opened, "return 0.1")
    assert opened.run("$('story').textContent").startswith("It learned nothing: ")
    assert opened.run("$('answers').textContent.match(/[▲▼]/)") is None


def test_no_code_knows_a_reward_by_its_name():
    names = re.findall(r"^  '([\w ]+)': '", TEXT, flags=re.MULTILINE)
    assert len(names) == 6
    assert [TEXT.count(f"'{name}'") for name in names] == [1, 1, 1, 1, 1, 2]  # the reader's own is named


SHOWN = "[$('paid').textContent, $('right').textContent, $('story').textContent, $('said').textContent]"
CURVES = "['paid', 'right'].map((name) => $(`${name}-curve`).lastElementChild.getAttribute('points'))"
GUESS = ["–", "26%", "Guess what it learns. Then press Train.", ""]
ASKED = ["–", "26%", "Get its right answers to 90% with five seeds. Then press Train.", ""]


@browser.needs_browser
@pytest.mark.parametrize("change", ["$('presets').children[3].click()", "$('code').value += ' '; $('code').oninput()"])
def test_another_reward_clears_the_run_before(opened, change):
    answers = opened.run("$('answers').textContent")
    train(opened, "return text.length")
    assert opened.run(SHOWN) != GUESS and all(opened.run(CURVES))
    opened.run(change)
    assert opened.run(SHOWN) in (GUESS, ASKED) and opened.run(CURVES) == ["", ""]
    assert opened.run("$('answers').textContent") == answers
    opened.scheme("light")  # with motion: a run that goes on is stopped, and draws no more
    opened.run("$('train').click()")
    until(opened, "$('step').textContent.startsWith('step')")
    opened.run(change)
    time.sleep(0.3)
    assert opened.run(SHOWN) in (GUESS, ASKED) and opened.run("worker === undefined && $('step').textContent === ''")


@browser.needs_browser
def test_an_edit_leaves_the_cursor_where_it_is(opened):
    opened.run("$('code').focus(); $('code').setSelectionRange(3, 3)")
    opened.call("Input.insertText", text="xy")
    assert opened.run("[$('code').value.slice(0, 6), $('code').selectionStart]") == ["// xy0", 5]


@browser.needs_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_long_lines_wrap_next_to_their_numbers(opened, width):
    opened.size(width, 844)
    code = ["let a = 1", "", "// " + "long words " * 20, "// " + "x" * 120 + "   ", "return a", ""]
    opened.run(f"$('code').value = {json.dumps(chr(10).join(code))}; $('code').oninput()")
    heights = opened.run(
        "[...$('lines').children].map((line) => Math.round(line.getBoundingClientRect().height / 20.8))"
    )
    assert len(heights) == 6 and heights[:2] == [1, 1] and heights[4:] == [1, 1] and min(heights[2:4]) > 1
    assert opened.run("Math.abs($('code').scrollHeight - $('lines').scrollHeight)") <= 1


@browser.needs_browser
def test_the_numbers_in_the_words_are_those_of_the_code(opened):
    said = opened.run("document.querySelector('.lead').textContent + document.querySelector('.answers p').textContent")
    assert re.findall(r"\d+", said) == [str(n) for n in opened.run("[GROUP, GROUP, LONGEST]")]


@browser.needs_browser
def test_the_sentence_during_a_run_is_heard_only(opened):
    opened.run(
        "window.seen = []; const look = () => seen.push([$('story').textContent, $('story').style.opacity]);"
        "new MutationObserver(look).observe($('story'), { childList: true })"
    )
    train(opened, "return tags.length")
    during = [opacity for text, opacity in opened.run("seen") if text.startswith("Step ")]
    assert during and set(during) == {"0"} and opened.run("$('story').style.opacity") == "1"


# As in lesson 08


@browser.needs_browser
def test_advantages_loss_and_update_are_those_of_lesson_08(opened):
    import torch
    from losses_by_hand import formulas, source_of_formulas

    steps = opened.run("""(() => {
      const run = newRun(3), steps = [], before = [...run.weights];
      for (let i = 0; i < 3; i++) {
        const batch = collect(run), rewards = batch.map((a) => i === 1 ? a.tags.length : +a.right);
        learn(run, batch, rewards);
        const tokens = (a) => a.steps.map(({ state, token }) => [rowOf(state), state.last, token]);
        const answers = batch.map((a) => ({ sum: a.sum, advantage: a.advantage, steps: tokens(a) }));
        steps.push({ rewards, answers, weights: [...run.weights] });
      }
      return { before, steps };
    })()""")
    constants = "[TOKENS, NUMBERS, ZERO, SUMS, COPY, GROUP, RATE, SLOW]"
    TOKENS, NUMBERS, ZERO, SUMS, COPY, GROUP, RATE, SLOW = opened.run(constants)
    lesson = formulas(source_of_formulas())
    start = torch.tensor(steps["before"], dtype=torch.float64)
    parts = [start[:SUMS].view(-1, TOKENS), start[SUMS:COPY].view(NUMBERS, NUMBERS), start[COPY:]]
    policy = torch.nn.ParameterList(part.clone() for part in parts)
    groups = [{"params": [policy[0], policy[2]], "lr": RATE}, {"params": [policy[1]], "lr": SLOW}]
    optimizer = torch.optim.Adam(groups)

    def token_logps(policy, batch):
        habits, sums, copies = policy
        rows, lasts, tokens = batch["completion_ids"]
        logits = habits[rows]
        known = torch.nn.functional.pad(sums[batch["sums"]], (ZERO, TOKENS - ZERO - NUMBERS))
        repeated = torch.nn.functional.one_hot(lasts + 1, TOKENS + 1)[..., 1:] * copies[rows][..., None]
        return (logits + known[:, None] + repeated).log_softmax(-1).gather(-1, tokens[..., None])[..., 0]

    lesson.update.__globals__["token_logps"] = token_logps  # of a table instead of a language model
    for step in steps["steps"]:
        answers = step["answers"]
        advantages = lesson.advantages_of(torch.tensor(step["rewards"], dtype=torch.float64), GROUP)
        assert [answer["advantage"] for answer in answers] == pytest.approx(advantages.tolist(), abs=1e-9)
        longest = max(len(answer["steps"]) for answer in answers)
        padded = [answer["steps"] + [[0, -1, 0]] * (longest - len(answer["steps"])) for answer in answers]
        mask = torch.tensor([[i < len(answer["steps"]) for i in range(longest)] for answer in answers]).int()
        batch = {"completion_ids": torch.tensor(padded).permute(2, 0, 1), "completion_mask": mask}
        batch |= {"sums": torch.tensor([answer["sum"] for answer in answers]), "advantages": advantages}
        lesson.update(policy, optimizer, batch)
        updated = torch.cat([part.detach().flatten() for part in policy])
        moved = torch.tensor(step["weights"], dtype=torch.float64)
        assert (moved - start).abs().max() > 0.09
        # Adam divides by the size of a gradient, so a gradient that is 0 but for rounding may differ.
        torch.testing.assert_close(updated, moved, rtol=0, atol=1e-6)


# Whatever the reader types

BAD = {
    "let a = 1\nreturn a +": r"Line 2: SyntaxError: ",
    "let a = 1\nreturn b": r"Line 2: ReferenceError: b is not defined \(",
    "// one\n\nnull.x": r"Line 3: TypeError: ",
    "const f = () => f()\nreturn f()": r"Line 1: RangeError: ",
    "throw 7": r"The reward threw 7\.",
    "": r"The reward returned nothing; return one number ",
    "return 'much'": r'The reward returned the text "much"; return one number ',
    "return NaN": r"The reward returned NaN; ",
    "return 1 / 0": r"The reward returned Infinity; ",
    "return 1e300": r"The reward returned 1e\+300; ",
    "return [1, 2, 3]": r"The reward returned an array of 3 values; ",
    "return {}": r"The reward returned a value of type object; ",
    "return async () => 1": r"The reward returned a value of type function; ",
    "Array.prototype.map = () => [1]; return 1": r"The reward returned something else; ",
    "while (true);": r"The reward took more than 3 seconds and was stopped",
    "return 1 }; while (true); {": r"The reward took more than 3 seconds and was stopped",
    "document.title = 'mine'": r"Line 1: ReferenceError: document is not defined \(a reward has no page ",
    "postMessage({ values: [] })": r"Line 1: ReferenceError: postMessage is not defined ",
    "return 1 }; postMessage({ values: [] }); {": r"Line 1: ReferenceError: postMessage is not defined",
    "return eval('1')": r"Line 1: ReferenceError: eval is not defined ",
    "return (() => 1).constructor('return 1')()": r"Line 1: EvalError: ",
}


@browser.needs_browser
def test_bad_code_gives_one_sentence_and_the_page_goes_on(opened):
    title = opened.run("document.title")
    for code, sentence in BAD.items():
        said = train(opened, code)
        assert re.match(sentence, said) and "\n" not in said and said[-1] in ".?" and len(said) < 220, (code, said)
        line = re.match(r"Line (\d)", said)
        assert opened.run("document.querySelector('#lines .wrong')?.textContent.trim()") == (line and line[1])
        assert opened.run("$('code').getAttribute('aria-invalid')") == "true"
    assert train(opened, "return tags.length") == "Trained for 120 steps."
    assert opened.run("$('code').getAttribute('aria-invalid')") == "false"
    assert opened.run("document.title") == title and opened.run("$('unable').hidden")


@browser.needs_browser
def test_a_seed_repeats_a_run_and_again_takes_the_next(opened):
    stories = []
    for _ in range(2):
        train(opened, "return Math.random() + text.length / 100")
        stories.append(opened.run("$('story').textContent"))
    opened.run("$('again').click()")
    until(opened, "!worker")
    assert stories[0] == stories[1] != opened.run("$('story').textContent")
    assert opened.run("$('seed').value") == "1"


@browser.needs_browser
def test_stop_stops(opened):
    opened.scheme("light")  # with motion, a run takes ten seconds
    opened.run("$('train').click()")
    until(opened, "$('step').textContent.startsWith('step')")
    opened.run("$('train').click()")
    stopped = "[$('said').textContent, $('train').textContent, worker === undefined]"
    assert opened.run(stopped) == ["Stopped.", "Train", True]
    shown = opened.run("document.body.innerText")
    time.sleep(0.5)
    assert opened.run("document.body.innerText") == shown


@browser.needs_browser
def test_a_link_shows_its_code_and_does_not_run_it(opened):
    code = 'return text.includes("<answer>7</answer>") ? "a+b & 100%" : 0'
    opened.run(f"$('code').value = {json.dumps(code)}; $('seed').value = 5; share()")
    link = opened.run("location.href")
    go(opened, link)
    shown = "[$('code').value, $('seed').value, document.querySelector('[aria-pressed=true]').textContent]"
    assert opened.run(shown) == [code, "5", "Your turn"]
    assert opened.run("$('said').textContent") == "This reward came with the link. Read it, then press Train."
    go(opened, f"{PAGE.as_uri()}#code={quote('while (true);')}&seed=x")
    time.sleep(0.5)
    assert opened.run("[worker === undefined, $('train').textContent, $('paid').textContent]") == [True, "Train", "–"]
    opened.run("$('train').click()")
    until(opened, "!worker")
    assert "was stopped" in opened.run("$('said').textContent")
    go(opened, f"{PAGE.as_uri()}#code={'x' * 5001}")
    assert opened.run("$('said').textContent") == "The code in this link is too long."


# Alone


@pytest.fixture
def server():
    """A server on this machine, and what it was asked for: workers ignore the browser's switch for the network."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()


CALLS = [
    "fetch('http://HOST/fetch')",
    "import('http://HOST/import')",
    "importScripts('http://HOST/importScripts')",
    "let x = new XMLHttpRequest(); x.open('GET', 'http://HOST/xhr', false); x.send()",
    "new EventSource('http://HOST/events')",
    "new WebSocket('ws://HOST/socket')",
    "new Worker('data:text/javascript,fetch(`http://HOST/worker`)')",
    "import('data:text/javascript,fetch(`http://HOST/data`)')",
]


@browser.needs_browser
@pytest.mark.parametrize("walls", ["both", "policy", "neither"])
def test_code_reaches_no_network(opened, server, tmp_path, walls):
    """Two walls: the names are gone, and the page's policy forbids the rest. Without both, the server is asked."""
    host, asked = server
    text = TEXT if walls == "both" else TEXT.replace(" delete owner[name];", " ;")
    if walls == "neither":
        text = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", text)
    copy = tmp_path / PAGE.name
    copy.write_text(text, encoding="utf-8")
    go(opened, copy.as_uri())
    tries = "".join(f"try {{ {call} }} catch (error) {{ }}\n" for call in CALLS).replace("HOST", host)
    assert train(opened, f"if (!this.tried) {{\nthis.tried = true\n{tries}}}\nreturn 0") == "Trained for 120 steps."
    if walls == "neither":
        assert {"/fetch", "/import", "/importScripts", "/xhr"} <= set(asked)
    else:
        assert asked == []
    assert [address for address in opened.requests() if not address.startswith(("file:", "about:", "blob:"))] == []


@browser.needs_browser
def test_only_the_language_is_left_in_the_worker(opened):
    code = """let names = [], owner = this
while (owner !== Object.prototype) {
  names.push(...Object.getOwnPropertyNames(owner))
  owner = Object.getPrototypeOf(owner)
}
let language = ["Object", "Array", "Number", "Boolean", "String", "Symbol", "BigInt", "Date", "RegExp", "JSON", "Math",
  "Intl", "Map", "Set", "Promise", "undefined", "NaN", "Infinity", "console",
  "TEMPORARY", "PERSISTENT"]  // two numbers that Chromium does not let go
let more = /Error$|^(parse(Int|Float)|is(NaN|Finite)|(en|de)codeURI(Component)?)$/
throw new Error("left: " + names.filter((name) => !language.includes(name) && !more.test(name)))"""
    assert train(opened, code) == "Line 10: Error: left: ."


@browser.needs_browser
def test_without_workers_the_page_says_so_and_offers_the_recording(opened):
    script = opened.call("Page.addScriptToEvaluateOnNewDocument", source="delete window.Worker")
    try:
        go(opened, PAGE.as_uri())
        assert opened.run("[$('unable').hidden, $('page').hidden]") == [False, True]
        assert opened.run("$('unable').querySelector('a').getAttribute('href')") == "watch-it-cheat.html"
    finally:
        opened.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])


def test_it_is_small_and_refers_to_nothing_elsewhere():
    assert PAGE.stat().st_size < 30_000
    assert "://" not in TEXT
    links = re.findall(r'(?:href|src)="([^"]+)"', TEXT)
    files = [link.partition("#")[0] for link in links if link != "data:,"]
    assert len(files) >= 5 and all((PAGE.parent / file).is_file() for file in files)


# How it looks


@browser.needs_browser
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_moves_while_it_trains(opened, width):
    opened.size(width, 844)
    opened.run("""window.places = new Set();
      const parts = [...document.querySelectorAll('#bar, .cards, #story, .answers, #answers, .answers p, nav')];
      const look = () => places.add(parts.map((part) => part.getBoundingClientRect().top + scrollY).join());
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true });""")
    opened.scheme("light")  # with motion
    opened.run("window.setTimeout = ((wait) => (f, ms) => wait(f, ms > 1000 ? ms : 0))(setTimeout); $('train').click()")
    until(opened, "!worker")
    assert len(opened.run("[...places]")) == 1, opened.run("[...places]")
    assert opened.run("document.documentElement.scrollWidth") == width


@browser.needs_browser
def test_less_motion_is_respected(opened):
    opened.run("window.drawn = 0; new MutationObserver(() => drawn++).observe($('paid'), { childList: true })")
    assert train(opened, "return text.length") == "Trained for 120 steps."
    assert opened.run("drawn") == 1 + 4  # the edit clears the run before


@browser.needs_browser
def test_it_has_a_dark_side(opened):
    colors = []
    for scheme in ("light", "dark"):
        opened.scheme(scheme)
        of = "getComputedStyle"
        colors.append(opened.run(f"[{of}(document.body).backgroundColor, {of}($('paid')).color]"))
    assert colors == [["rgb(251, 250, 248)", "rgb(179, 74, 0)"], ["rgb(21, 24, 28)", "rgb(245, 161, 92)"]]


@browser.needs_browser
def test_every_control_has_a_name_and_the_result_is_announced(opened):
    train(opened, SOUND)
    nodes = opened.call("Accessibility.getFullAXTree")["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node]
    roles = ("button", "textbox", "spinbutton", "link", "image", "img")
    controls = [(role, name) for role, name in named if role in roles]
    assert len(controls) > 15 and all(name for _, name in controls), controls
    assert sum(role == "status" for role, _ in named) == 2
    assert any(re.match(r"Curve: from 0\.\d\d to 0\.9\d in 120 steps\.", name) for _, name in controls)
