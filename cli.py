"""The command line from a checkout: ``python cli.py check bptt``."""

from derive.cli import program

if __name__ == "__main__":
    program()
