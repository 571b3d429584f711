"""`python -m campaign`: many runs side by side, a table by combination, exit 1 where a promise was broken."""

from campaign.table import main

if __name__ == "__main__":
    raise SystemExit(main())
