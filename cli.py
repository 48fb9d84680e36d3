"""The command line from a checkout: ``python cli.py check bptt``."""

from derive.cli import app

if __name__ == "__main__":
    app()
