"""Lets `python -m msdnet` run the command line."""

from msdnet.cli import main

main()
