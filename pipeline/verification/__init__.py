"""`streamgauge verify`: what a query has committed, computed again as a batch, against what its sink holds.

**The prefix.** Spark writes `offsets/N` before batch N writes its first row, and `commits/N` when its last row is in the sink. So the last
committed batch N fixes a prefix of the source topic, from where the query started to the offsets that batch N ends at, and everything
that this prefix makes of the sink is there. The same `decode` and `transform` run over it as a batch: E(N).

**While the query runs** the sink may be ahead of E(N). Batches run one at a time, so it can be ahead only by batches that were planned when
it was looked at. For a compacted topic three things are asked, in this order: the last committed batch N, the end L of the result topic, the
last planned batch P; again, until P is N or N + 1. Below L there is then all that the batches to N have written, and perhaps a part of
what batch N + 1 writes, whose offsets are fixed by its plan, whether or not it is committed later. A key holds the whole row, so each
key has below L its row of E(N) or its row of E(N + 1). A row that equals neither is wrong; one that E(N) has must be there.
That is exact: nothing has to be waited for, and nothing is looked at twice. One exception: Kafka may compact a record below L away because of a
newer one above, while the topic is read. A key that differs and has a newer record is looked at again from the start, three times at most.
The archive and the dead letters say which record each row comes from: rows of records behind the prefix are simply not compared.

**Late rows.** Batch N drops the rows whose event time is not after the watermark in the plan of batch N - 1 (0 before the first). With
one plan a batch (checkpoint/journal) each record is known to belong to a batch, so the batch leaves out what the stream has left out, exactly,
and the comparison is for equality. Every stateful query drops late rows in its first stateful step, which tells events apart by their time; a window ends
after every event in it, so no later step finds anything late. Where plans are missing the watermark is known to lie between those around
the gap; a row between the two may have been dropped or not. Results that such rows touch and that differ are counted apart ("untold").
A watermark that is ahead of every event that counts and came before it was moved by one that should not have counted. What it dropped counts in the
batch, unless it was late on its own partition, so the sink that lacks it is wrong.

**What retention has cut.** The batch sees less than the stream has seen, so the sink may hold more: a window that is missing in the batch, or one where
every column that can only grow is at least what the batch says. It may not hold less, and not differ in windows that begin after
the newest event that the cut part can have held, which the watermark after it bounds: watermark + its delay + the skew of partitions. Those that may are
counted apart ("not checkable"). Rows of the archive and dead letters are told by their offset: nothing but those below the cut is exempt.

**Expired rows.** `streamgauge expire` deletes windows that ended long before the newest: such a row may be missing; while it is there it must be right.
"""
