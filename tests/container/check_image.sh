#!/usr/bin/env bash
# Proves the image on a Linux machine without Docker: builds it, serves from it without a network of the host's, measures on the
# CPU by command line and by page, and finds the runs again from a new container. Needs root; not part of pytest. On two cores with other
# work beside it, with wheels of torch's CPU build at hand, building took 6 minutes and everything behind it 4 min 20 s.
#
#   tests/container/check_image.sh [IMAGE]      IMAGE: one that is built already
#
#   BASE_IMAGE      base to build on (default: the Dockerfile's); BUILD_OPTIONS: more options of `buildah bud`
#   WORK            folder for volumes and pictures (default: a new one)
#   PYTHON          a Python with Playwright (default: .venv/bin/python); chromium must be installed
# Needs buildah and runc. A base without a registry: debootstrap --variant=minbase --include=ca-certificates,python3 SUITE FOLDER,
# then c=$(buildah from scratch) && buildah add "$c" FOLDER / && buildah commit "$c" NAME.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
python="${PYTHON:-$root/.venv/bin/python}"
work="${WORK:-$(mktemp -d)}"
containers=()

say() { printf '\n== %s\n' "$*"; }
die() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
cleanup() {
  [ -z "${server_pid:-}" ] || kill -KILL "$server_pid" 2>/dev/null || true
  [ ${#containers[@]} -eq 0 ] || buildah rm "${containers[@]}" >/dev/null
}
trap cleanup EXIT

[ "$(id -u)" = 0 ] || die "needs root: it joins the container's network"
for tool in buildah runc nsenter; do command -v "$tool" >/dev/null || die "needs $tool"; done

image="${1:-}"
if [ -z "$image" ]; then
  say "build"
  image=localhost/kernelviz:checked
  # Docker's format: OCI's has no health check. BUILD_OPTIONS is a list of words.
  # shellcheck disable=SC2086
  buildah bud --runtime runc --format docker --layers ${BASE_IMAGE:+--build-arg BASE_IMAGE="$BASE_IMAGE"} ${BUILD_OPTIONS:-} \
    --tag "$image" "$root" >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; die "build"; }
fi

# A setting of the image as JSON, or a list of it as lines.
setting() {
  buildah inspect --type image "$image" | python3 -c '
import json, sys
found = json.load(sys.stdin)["Docker"]["config"]
for name in sys.argv[1].split("."):
    found = found[name]
print("\n".join(found) if isinstance(found, list) else found)' "$1"
}

mapfile -t entry < <(setting Entrypoint)
mapfile -t command < <(setting Cmd)
mapfile -t health < <(setting Healthcheck.Test)
[ "${health[0]}" = CMD ] || die "the health check is no list of words"
health=("${health[@]:1}")
say "image: user $(setting User), entry ${entry[*]}, command ${command[*]}"

mkdir -p "$work"/{data,cache,lock}
# What Docker does to a fresh named volume: the owner and mode of the image's folder.
chown 10001:10001 "$work/data" "$work/cache"
chmod 1777 "$work/lock"

fresh() {
  container="$(buildah from "$image")"
  containers+=("$container")
  # buildah mounts folders of its own for the image's VOLUMEs, over ours.
  buildah config --volume /var/lib/kernelviz- --volume /var/cache/kernelviz- "$container"
}
# The image's own program in a container without a network, without any privilege, on the volumes.
inside() {
  buildah run --isolation oci --runtime runc --network none --cap-drop all --tty=false \
    --volume "$work/data:/var/lib/kernelviz" --volume "$work/cache:/var/cache/kernelviz" \
    --volume "$work/lock:/run/lock/kernelviz" "$container" -- "$@"
}

fresh
say "size and contents"
mounted="$(buildah mount "$container")"
du -xsh "$mounted" | cut -f1
left="$(find "$mounted"/{root,home,tmp,var/lib/apt/lists,var/cache/apt/archives} -xdev \( -name '*.whl' -o -name '*.deb' -o -name '*_Packages*' \
  -o -name pip -o -name '.cache' \) | head)"
[ -z "$left" ] || die "caches in the image: $left"
buildah umount "$container" >/dev/null
inside sh -ec 'id; gcc --version | head -1; g++ --version | head -1; tini --version
  test ! -w /opt/kernelviz && test ! -w /etc && test -w "$KERNELVIZ_HOME" && test -w "$KERNELVIZ_CACHE"
  python -c "import sysconfig, os; os.stat(sysconfig.get_paths()[\"include\"] + \"/Python.h\")"
  pip freeze | grep -E "^(torch|triton|streamlit|kernelviz)\b"'

say "a run on the CPU, by command line"
inside "${entry[@]}" kernelviz run add --sweep 'n=2^10..2^14' --device cpu --json >"$work/cli.json" 2>"$work/cli.log" \
  || { tail -20 "$work/cli.log"; die "kernelviz run"; }
summary='
import json, sys
run = json.load(open(sys.argv[1]))
outcomes = [r["outcome"] for r in run["results"]]
print(run["id"], run["status"], len(outcomes), "results,", sum("stage" in o for o in outcomes), "failed", file=sys.stderr)
assert run["status"] == "finished" and outcomes and not any("stage" in o for o in outcomes), run["status"]
print(run["id"])'
cli_run="$(python3 -c "$summary" "$work/cli.json")"

say "the health check, nobody there"
if inside "${health[@]}" 2>/dev/null; then die "healthy without a server"; else echo "exit $?"; fi

say "serve"
started="$(date +%s%N)"
inside "${entry[@]}" "${command[@]}" >"$work/serve.log" 2>&1 &
runner=$!
# The first process of the container among the descendants of what was just started.
first_process() {
  local pid parent
  for pid in $(pgrep -x "${entry[0]##*/}"); do
    parent="$pid"
    while [ "$parent" -gt 1 ]; do
      parent="$(awk '/^PPid/ {print $2}' "/proc/$parent/status" 2>/dev/null || echo 0)"
      [ "$parent" != "$runner" ] || { echo "$pid"; return; }
    done
  done
}
for _ in $(seq 300); do
  server_pid="$(first_process)"
  if [ -n "$server_pid" ] && nsenter -t "$server_pid" -a --setuid 10001 --setgid 10001 \
    env PATH=/opt/kernelviz/bin:/usr/bin "${health[@]}" 2>/dev/null; then break; fi
  kill -0 "$runner" 2>/dev/null || { cat "$work/serve.log"; die "the server ended"; }
  sleep 0.1
done
echo "healthy after $((($(date +%s%N) - started) / 1000000)) ms"
awk '/^(Name|NSpid|Uid|CapEff|NoNewPrivs)/' "/proc/$server_pid/status"
[ "$(awk '/^NSpid/ {print $NF}' "/proc/$server_pid/status")" = 1 ] || die "tini is not process 1"
nsenter -t "$server_pid" -n "$python" -c \
  'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8501/api/health").read().decode())'

say "a run on the CPU, by the page"
page_run="$(nsenter -t "$server_pid" -n env HOME="$work" "$python" "$here/press_run.py" http://127.0.0.1:8501 "$work/page.png")"
echo "$page_run"

say "stop"
stopped="$(date +%s%N)"
kill -TERM "$server_pid"
wait "$runner" && code=0 || code=$?
unset server_pid
echo "stopped after $((($(date +%s%N) - stopped) / 1000000)) ms, exit $code"

say "a new container on the same volumes"
fresh
inside kernelviz runs --json >"$work/runs.json"
for run in "$cli_run" "$page_run"; do
  grep -q "\"$run\"" "$work/runs.json" || die "$run is gone"
  inside kernelviz runs show "$run"
done
find "$work/cache" -mindepth 1 -maxdepth 1 -printf '%f '
printf '\n\nall of it holds; files in %s\n' "$work"
