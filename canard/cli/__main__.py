from canard.cli import main

main()
