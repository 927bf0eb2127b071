"""Ask a trained model: each question gets the prompt of data.py, as in training, and the most likely answer.

python ask.py outputs/basic "What is 15 + 27?"            the model of a run; several questions are answered at once
python ask.py outputs/basic/merged "What is 15 + 27?"     the same model, merged with `python -m grpo_run.merge`
"""

import sys

from grpo_run.asking import ask, asked

folder, questions = asked(sys.argv[1:], 'python ask.py outputs/basic "What is 15 + 27?"')

from data import chat

ask(folder, questions, chat)
