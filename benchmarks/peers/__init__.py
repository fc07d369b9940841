"""Other engines that do a job of Streamgauge's, to put beside it on the same machine."""
