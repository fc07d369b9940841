"""`streamgauge verify` recomputes what a query has committed as a batch and compares the result with the query's sink.

**The prefix.** Spark writes `offsets/N` before batch N writes its first row, and `commits/N` after its last row is in the sink. The last
committed batch N therefore fixes a prefix of the source topic: from the offsets where the query started to the offsets where batch N ends.
The sink holds everything that this prefix produces. `verify` runs the query's own `decode` and `transform` over the prefix as a batch. The
result is E(N).

**A running query.** The sink may be ahead of E(N). Spark runs one batch at a time, so it can be ahead only by batches that were already
planned. For a compacted topic, `verify` reads the last committed batch N, then the end L of the result topic, then the last planned batch
P, and repeats until P is N or N + 1. Below L, the topic then holds everything that the batches up to N wrote, and possibly part of what
batch N + 1 writes. The plan of batch N + 1 fixes its offsets, whether or not it is committed later. A record holds the whole row of its
key, so below L each key has either its row of E(N) or its row of E(N + 1). A row that equals neither is wrong, and every key of E(N) must
be present. This comparison is exact, without waiting and without a second read of the topic.
One exception: while the topic is read, Kafka may compact away a record below L because of a newer one above. If a key differs and the topic
has grown, the comparison starts over, up to three attempts in total.
A batch in real-time mode has no plan until it ends. There, E(N + 1) is the result of everything that the topic holds, and a key may have
any row between the two. `verify` compares such a row by the columns that can only grow, and counts it separately ("ahead"). A run with
--once processes these records in a micro-batch, after which the comparison is exact.
Rows of archives and dead letters name the record they come from. Rows of records after the prefix are not compared.

**Late rows.** Batch N drops the rows whose event time is not after the watermark in the plan of batch N - 1 (0 before the first batch). The
journal (checkpoint/journal) keeps the plan of every batch, so the batch of each record is known. The recomputation drops exactly the rows
that the stream dropped, and the comparison is for equality. Every stateful query drops late rows in its first stateful step, by the time of
the event. A window ends after every event in it, so no later step finds late rows.
Where plans are missing, the watermark lies between those on either side of the gap. A row between the two may or may not have been dropped.
Results that differ and depend on such rows are counted separately ("unknown lateness").
A watermark later than every counted event before it was advanced by an event that should not have counted. Rows that it dropped count in
the recomputation unless they were late on their own partition as well, so a sink without them is wrong.

**Records removed by retention.** The recomputation sees fewer records than the stream did, so the sink may hold more: windows that the
recomputation lacks, or windows in which every column that can only grow is at least as large. Such windows are counted separately ("not
checkable"). The sink may not hold less. It may not differ in windows that begin after the newest event that the removed records can
contain. That event is no later than the watermark after the removed records, plus its delay, plus the partition skew. Rows of archives and
dead letters carry their offset, so only those below the cut are exempt.

**Expired rows.** `streamgauge expire` deletes windows that ended long before the newest one. Such a row may be missing, but must be correct
while it is present.
"""
