"""Two tiny base models that ship with the course, and how they are made."""
