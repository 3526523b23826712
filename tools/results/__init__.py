"""What the result of each tool says for programs, made of what its pipeline returned."""
