"""`python -m mrtr_flow.cli`."""

from mrtr_flow.cli import main

main()
