"""Ask a trained agent: each question gets the prompt of data.py, as in training, and its most likely episode.

python ask.py outputs/agent "What is 123 + 456?"     text in «…» came from the tools, and is not trained on
"""

import sys
from pathlib import Path
from types import SimpleNamespace

from grpo_run.asking import asked

folder, questions = asked(sys.argv[1:], 'python ask.py outputs/agent "What is 123 + 456?"')

from data import chat
from generation import generate, shown
from grpo_run.trained import load
from tools import check_tools, template_of


def main(folder: Path, questions: list[str]) -> None:
    """Print the episode of each question."""
    policy, tokenizer, report = load(folder)
    run, training = report["config"]["run"], SimpleNamespace(**report["config"]["training"])
    check_tools(tokenizer, str(folder))
    episodes = generate(
        policy,
        tokenizer,
        [{"prompt": chat(question, system=run["dataset_name"] != "arithmetic")} for question in questions],
        tokens=training.max_completion_length,
        turns=training.max_tool_calling_iterations,
        temperature=0.0,
        template=template_of(tokenizer, training),
        batch=run["eval_batch"],
        seed=0,
    )
    print(*(shown(tokenizer, episode) for episode in episodes), sep="\n\n")


if __name__ == "__main__":
    main(folder, questions)
