"""Jobs: rounds of tasks over external trainers, and what is made of their results.

A job is application code. It sees the public outcomes of tasks and nothing of the protocol, so none of it is under the law of the
tables: how many trainers must answer, and how models are averaged, is decided here in plain Python.

- ``troth.jobs.job``: what a job is, checked; ``troth.jobs.jobfile`` reads one from a JOB.toml.
- ``troth.jobs.running``: ``run_job``, which starts the trainers, runs the rounds and ends everything.
- ``troth.jobs.averaging``: federated averaging.
- ``troth.jobs.builtin``: the job that ``troth run`` runs when it is given none; ``digits`` and ``digits_trainer`` belong to it.

Nothing is imported here: a trainer of the built-in job imports one module of this package and must start fast.
"""
