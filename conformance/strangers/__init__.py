"""What other people's programs break on: a file per matter, each test named by what a user sees."""
