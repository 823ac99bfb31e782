"""The core: what a confirmation is and how it moves. `ledger` is the only writer of rows."""
