"""What spark-submit is given to run: the command `streamgauge`, with the arguments that follow it."""

from streamgauge.cli import main

main()
