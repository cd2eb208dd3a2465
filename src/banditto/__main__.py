"""`python -m banditto`."""

from banditto.cli import main

if __name__ == "__main__":
    main()
