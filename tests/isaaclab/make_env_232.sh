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

skip() {
  echo "SKIP isaaclab 2.3.2: $1" >&2
  exit 77
}

finish() {
  echo "$env/bin/python"
  exit 0
}

"$base" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || skip "it needs Python 3.11, $base is another"
packages="$("$base" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
hash="$({ cat "$lock"; echo "$wheel $packages"; } | sha256sum | cut -c1-12)"
env="${XDG_CACHE_HOME:-$HOME/.cache}/canard/envs/isaaclab232-$hash"
[ -f "$env/.complete" ] && finish

[ "${IF_MADE:-}" = 1 ] && skip "its environment is not made; run tests/isaaclab/make_env_232.sh"
mkdir -p "$(dirname "$env")"
exec 9>"$env.lock"
flock 9
[ -f "$env/.complete" ] && finish

rm -rf "$env"
echo "making $env (source of Isaac Lab 2.3.2)" >&2
"$base" -m venv --without-pip "$env"
echo "$packages" >"$env/lib/python3.11/site-packages/trainer-environment.pth"
pinned="$env/pinned.txt"
"$base" -m pip freeze --exclude-editable 2>/dev/null | grep '^[A-Za-z0-9._-]*==' >"$pinned" || true
pip=("$base" -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check)
if ! "${pip[@]}" -c "$pinned" -r "$lock" >&2 || ! "${pip[@]}" --no-deps "$wheel" >&2; then
  rm -rf "$env"
  skip "pip could not install $wheel or $lock (its messages are above)"
fi
touch "$env/.complete"
finish
