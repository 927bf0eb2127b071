"""Two tiny base models that ship with the course, made by `scripts/tiny/`, and held-out questions for lesson 06."""
