"""A gateway at work for a long time: random writes, deletes, reads, folds, restarts and
kills, every answer compared with a model, memory and disk watched.

`python -m soak --minutes 30` in the folder tests; test_soak.py runs a short one."""
