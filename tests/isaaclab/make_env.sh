#!/usr/bin/env bash
# Makes the Isaac Lab 3.0.0 environment (Python 3.12, about 8 GB) from requirements.txt, unless it is there,
# and prints its interpreter's path as the last line. Ends with 77 and one line where it cannot be had. With
# IF_MADE=1 nothing is made.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
lock="$here/requirements.txt"
what="isaaclab"
. "$here/../environments.sh"

[ "$(uname -sm)" = "Linux x86_64" ] || skip "its pinned packages are for Linux x86_64, this is $(uname -sm)"
claim "isaaclab-$(hash_of <"$lock")"
python="$(find_python 12)"
need_space 12

echo "making $env (Isaac Lab 3.0.0, about 8 GB)" >&2
"$python" -m venv "$env"
install -r "$lock"
complete
