# Sourced by the make_env scripts: environments under the user's cache, made once and shared by all checkouts.
# A script says in $what whom its messages are about, and ends by one of the two below.

# One line, and the code of a skip: it cannot be had here.
skip() {
  echo "SKIP $what: $1" >&2
  exit 77
}

# The last line is the interpreter's path.
finish() {
  echo "$env/bin/python"
  exit 0
}

# claim NAME: sets $env and ends here if it is there. Else this script is alone to make it, from nothing. With
# IF_MADE=1 nothing is made. NAME has a hash of all that the environment is made from.
claim() {
  env="${XDG_CACHE_HOME:-$HOME/.cache}/canard/envs/$1"
  if [ -f "$env/.complete" ]; then finish; fi
  if [ "${IF_MADE:-}" = 1 ]; then skip "its environment is not made; run $0"; fi
  mkdir -p "$(dirname "$env")"
  exec 9>"$env.lock"
  flock 9
  if [ -f "$env/.complete" ]; then finish; fi
  rm -rf "$env"
}

# The marker is written last, so that a build that was interrupted is never taken for a whole one.
complete() {
  touch "$env/.complete"
  finish
}

hash_of() {
  sha256sum | cut -c1-12
}

# need_space GB
need_space() {
  local free_gb
  free_gb="$(df -PBG "$(dirname "$env")" | awk 'NR == 2 { print int($4) }')"
  [ "$free_gb" -ge "$1" ] || skip "needs $1 GB free under $(dirname "$env"), found $free_gb GB"
}

# find_python MINOR: prints an interpreter of Python 3.MINOR that can make environments.
find_python() {
  local candidate named="CANARD_PYTHON3$1"
  for candidate in "${!named:-}" "python3.$1" "$HOME"/.pyenv/versions/3."$1".*/bin/python "/usr/bin/python3.$1"; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c "import ssl, sys, venv; sys.exit(sys.version_info[:2] != (3, $1))" 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  skip "no Python 3.$1 found; install one or set $named"
}

# install WORDS...: pip's own words, into $env, without what they depend on. Ends here where that fails.
install() {
  if ! "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps "$@" >&2; then
    give_up "$*"
  fi
}

# give_up WHAT
give_up() {
  rm -rf "$env"
  skip "pip could not install $1 (its messages are above)"
}
