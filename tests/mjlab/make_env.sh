#!/usr/bin/env bash
# Makes the mjlab environment (Python 3.11, the CPU's torch, about 2.3 GB) from requirements.txt, unless it is there,
# and prints its interpreter's path as the last line. Ends with 77 and one line where it cannot be had. With
# IF_MADE=1 nothing is made.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
lock="$here/requirements.txt"
what="mjlab"
. "$here/../environments.sh"

[ "$(uname -sm)" = "Linux x86_64" ] || skip "its pinned packages are for Linux x86_64, this is $(uname -sm)"
claim "mjlab-$(hash_of <"$lock")"
python="$(find_python 11)"
need_space 4

echo "making $env (mjlab 1.6.0, about 2.3 GB)" >&2
"$python" -m venv "$env"
grep -E '^torch(vision)?==' "$lock" >"$env/torch.txt"
if ! "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps -r "$env/torch.txt" >&2; then
  install --index-url https://download.pytorch.org/whl/cpu -r "$env/torch.txt"
fi
install -r "$lock"
complete
