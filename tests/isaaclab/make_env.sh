#!/usr/bin/env bash
# Makes the Isaac Lab 3.0.0 environment (Python 3.12, about 8 GB) from requirements.txt, unless it is there,
# and prints its interpreter's path as the last line. Ends with 77 and one line where it cannot be had. With
# IF_MADE=1 nothing is made.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
lock="$here/requirements.txt"
hash="$(sha256sum "$lock" | cut -c1-12)"
env="${XDG_CACHE_HOME:-$HOME/.cache}/canard/envs/isaaclab-$hash"
needed_gb=12

skip() {
  echo "SKIP isaaclab: $1" >&2
  exit 77
}

# The marker is written last, so that a build that was interrupted is never taken for a whole one.
finish() {
  echo "$env/bin/python"
  exit 0
}

find_python() {
  local candidate
  for candidate in "${CANARD_PYTHON312:-}" python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python /usr/bin/python3.12; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import ssl, sys, venv; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

[ -f "$env/.complete" ] && finish
[ "$(uname -sm)" = "Linux x86_64" ] || skip "its pinned packages are for Linux x86_64, this is $(uname -sm)"

[ "${IF_MADE:-}" = 1 ] && skip "its environment is not made; run tests/isaaclab/make_env.sh"
mkdir -p "$(dirname "$env")"
exec 9>"$env.lock"
flock 9
[ -f "$env/.complete" ] && finish

python="$(find_python)" || skip "no Python 3.12 found; install one or set CANARD_PYTHON312"
free_gb="$(df -PBG "$(dirname "$env")" | awk 'NR == 2 { print int($4) }')"
[ "$free_gb" -ge "$needed_gb" ] || skip "needs $needed_gb GB free under $(dirname "$env"), found $free_gb GB"

rm -rf "$env"
echo "making $env (Isaac Lab 3.0.0, about 8 GB)" >&2
"$python" -m venv "$env"
if ! "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps -r "$lock" >&2; then
  rm -rf "$env"
  skip "pip could not install $lock (its messages are above)"
fi
touch "$env/.complete"
finish
