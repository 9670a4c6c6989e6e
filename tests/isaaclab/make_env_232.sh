#!/usr/bin/env bash
# Makes an environment with the unmodified source of Isaac Lab 2.3.2, unless it is there, over the packages of the
# interpreter given as argument (Python 3.11 with the trainer's packages; 0.7 GB), and prints its path as the last
# line. Nothing of the interpreter's own environment changes. Ends with 77 and one line where it cannot be had. With
# IF_MADE=1 nothing is made.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
base="${1:-$here/../../.venv/bin/python}"
lock="$here/requirements-232.txt"
wheel="isaaclab==2.3.2.post1"
what="isaaclab 2.3.2"
. "$here/../environments.sh"

"$base" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || skip "it needs Python 3.11, $base is another"
packages="$("$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
claim "isaaclab232-$({ cat "$lock"; echo "$wheel $packages"; } | hash_of)"

echo "making $env (source of Isaac Lab 2.3.2)" >&2
"$base" -m venv --without-pip "$env"
echo "$packages" >"$env/lib/python3.11/site-packages/trainer-environment.pth"
pinned="$env/pinned.txt"
"$base" -m pip freeze --exclude-editable 2>/dev/null | grep '^[A-Za-z0-9._-]*==' >"$pinned" || true
pip=("$base" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check)
if ! "${pip[@]}" -c "$pinned" -r "$lock" >&2 || ! "${pip[@]}" --no-deps "$wheel" >&2; then
  give_up "$wheel or $lock"
fi
complete
