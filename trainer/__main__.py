"""`python -m trainer`: train, or step physics, as one JSON file says."""

from trainer.command import main

if __name__ == "__main__":
    main()
