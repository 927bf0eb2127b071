"""Ask a trained model: each question gets the prompt of data.py, as in training, and the most likely answer.

python ask.py outputs/basic "What is 15 + 27?"            the model of a run; several questions are answered at once
python ask.py outputs/basic/merged "What is 15 + 27?"     the same model, merged with `python -m lib.merge`
"""

import sys
from pathlib import Path

if len(sys.argv) < 3:
    sys.exit('Error: name a finished run and a question: python ask.py outputs/basic "What is 15 + 27?"')

from data import chat
from lib.generating import generate
from lib.trained import load


def main(folder: Path, questions: list[str]) -> None:
    """Print the answer to each question."""
    policy, tokenizer, report = load(folder)
    training = report["config"]["training"]
    answers = generate(
        policy,
        tokenizer,
        [chat(question) for question in questions],
        max_new_tokens=training["max_completion_length"],
        temperature=0.0,
        chat_template_kwargs=training["chat_template_kwargs"],
    )
    print(*answers, sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
