"""Two tiny base models made by `scripts/tiny/`, and questions for lesson 06."""
