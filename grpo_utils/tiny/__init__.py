"""Two tiny base models made by `scripts/tiny/`, questions for lesson 06, and a real thought for lesson 10."""
