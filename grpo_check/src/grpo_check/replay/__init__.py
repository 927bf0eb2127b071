"""Write a page that replays a run: its completions step by step, its curves and its verdicts, in one HTML file.

| module | contents |
|---|---|
| `records` | a recorded run: steps, groups, completions |
| `read` | the folder of a run into a recording |
| `samples` | the held-out samples of `HealthCallback` into a recording, where TRL logged no completions |
| `summary` | what is said about the whole run: curves, verdicts, the most paid completions, the weights |
| `sampling` | fewer groups and steps, so that the page stays small |
| `page` | recordings into HTML; `page.html`, `page.css` and `page.js` are its parts |
"""
