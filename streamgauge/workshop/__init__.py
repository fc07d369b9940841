"""The workshop: labs that a learner edits in a folder of their own and that tests grade. The labs are in workshop/."""
