"""Well-known protocols and puzzles whose numbers others have published: to be tried, and to be checked against."""
