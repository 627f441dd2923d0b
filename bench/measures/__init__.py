"""One module per figure; each has `measure(rounds)`, which yields its rows."""
