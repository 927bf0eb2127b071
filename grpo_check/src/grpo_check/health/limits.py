"""Every number that a verdict depends on, with its meaning and its source.

"Measured" means the runs of `tests/test_health_training.py` and lesson 04: both tiny models, ten
seeds, healthy and broken, on a CPU. "Simulated" means the logs of `tests/health_logs.py`, drawn after
published runs. None of these comes from a GPU run so far.
"""

#: Training steps that a verdict needs, except nan, kl and strings, and looks back on; half of what one may take.
FEWEST_STEPS = 10
#: Entries whose mean is the value now, or then; halves the noise of a single entry (1 / sqrt 5).
WINDOW = 5
#: Standard errors that make a change sure; simulated: asked at every step, three would cry wolf.
SURE = 5.0
#: Standard errors by which a reward has risen; simulated: noise alone passes it in one of 250 looks.
RISEN = 3.5
#: Standard errors of a rise, below which a reward is said not to rise; one in ten flat runs passes it.
LIKELY = 2.0
#: Training steps that a hack may take to show; simulated: a late hack within one run.
HACK_STEPS = 60
#: Training steps before a trend is judged; measured: a healthy run has risen by then.
TREND_STEPS = 20
#: Training steps after which "the reward does not rise" is an alarm; simulated: GSM8K rises within these.
FLAT_STEPS = 100
#: Entries in a row with a grad_norm that is not a number; fp16's scaler skips single steps while it settles.
NAN_IN_A_ROW = 3
#: Nats per token from the reference model, three times running; measured: healthy to 0.4, exploded 5 to 16.
KL = 2.0
#: Share of the first entropy, with no more reward than at first; measured: healthy runs keep a fifth and more.
ENTROPY_GONE = 0.05
#: Times the first entropy, with no more reward than at first; measured: collapsed runs 20 to 40 times.
ENTROPY_BURST = 5.0
#: Times the first entropy, up or down, with a lost reward; measured: 3 and more.
ENTROPY_MOVED = 2.0
#: Share of the best reward that is lost, surely, with a second sign; measured: nearly all is lost.
REWARD_LOST = 0.75
#: Different completions for each different gold answer; different questions have different answers.
DISTINCT = 0.3
#: Share of tied groups, the low end of the interval over 10 or 20 steps; reached with ten of ten, or 19 of 20.
TIED_SURELY = 0.7
#: Share of tied groups over so many steps: most of each batch is wasted, though some groups still teach; chosen.
TIED_LONG, TIED_STEPS = 0.9, 60
#: Chance at most that ties alone leave so many logged steps without a gradient; chosen: one run in 200.
TIED_BY_CHANCE = 0.005
#: Share of correct completions; with nine in ten correct, most groups of eight tie.
RIGHT = 0.9
#: Share of correct answers that speaks for a run; clearly fewer samples contradict its rewards; chosen.
HALF = 0.5
#: Share of completions cut off: four of five cannot give their answer; healthy runs here: under 0.05.
CLIPPED = 0.8
#: Share of completions cut off, and nats per token, from which they are said of a run without problems; chosen.
CUT_SAID, KL_SAID = 0.2, 0.5
#: Share of completions that end when given four times the room; then the limit was the fault.
ENDED = 0.5
#: Mean importance ratio that is worth a warning; chosen: below the 0.57 that trl#5814 measured without a fault.
WEIGHT_LOW = 0.5
#: Mean importance ratio at which nine tenths of the weight are lost; chosen.
WEIGHT_GONE = 0.1
#: Share of correctly formatted completions, if it is not rising; a quarter of the tiny models' start (0.2).
HARDLY_FORMED = 0.05
#: Times the mean length before, up and down; measured: healthy runs grow to 1.2.
LONGER, SHORTER = 1.5, 0.67
#: Share of its best value that correctness lost, surely; simulated: healthy runs of small batches lose 0.3 by noise.
CORRECT_FELL = 0.4
#: Share of what a reward can pay, below which a change is small; five steps of 8 completions: a standard error of 0.08.
MATTERS = 0.1
#: Times the median step without the end of one; chosen: evaluation, checkpoints and samples are not timed.
STALLED = 10.0
#: Seconds at least before a step is called stalled; chosen: a compilation, a busy machine.
STALLED_SECONDS = 30.0
#: Times the first seconds a step, at equal lengths; a busy machine doubles them (measured).
SLOWER = 3.0
#: Entries with exactly the same mean length, after which it is the limit of a completion; and the least tokens of one,
#: because short answers can all have one length.
SAME_LENGTHS, LEAST_LIMIT = 8, 32
