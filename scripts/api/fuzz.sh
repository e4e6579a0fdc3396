#!/usr/bin/env bash
# Sends requests made from docs/openapi.json to a live server, as an administrator, a member, and nobody: no answer may be a 5xx or
# differ from its description. usage: fuzz.sh DANLU [EXAMPLES]
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/../paths.sh"
danlu="$(realpath "$1")"
examples="${2:-25}"
venv="$("$ROOT/scripts/venv.sh" "$ROOT/scripts/api/requirements.txt")"

data="$(mktemp -d)"
"$danlu" --data "$data" up --listen 127.0.0.1:0 --simulate 1x8:ascend:910B3 --registration open >"$data/log" 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$data"' EXIT
until "$danlu" --data "$data" nodes >/dev/null 2>&1; do kill -0 "$server"; sleep 0.1; done
address="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$data/server.json")"

"$danlu" --data "$data" submit --cpus 100m -- sleep 1000 >/dev/null 2>&1
secret="$("$danlu" --data "$data" admin user add ada 2>/dev/null)"
echo "correct horse battery" | "$danlu" --data "$data" password ada --link "$secret" 2>/dev/null
export XDG_CONFIG_HOME="$data/config"
echo "correct horse battery" | "$danlu" login ada --server "$address" 2>/dev/null
member="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["token"])' "$data/config/danlu/profile.json")"

# Streams and terminals have no end, or none that HTTP describes.
fuzz() {
  say "== as $1"
  cd "$data" # where it may leave its notes
  "$venv/bin/schemathesis" run "$ROOT/docs/openapi.json" --url "$address/api/v1" ${2:+-H "Authorization: Bearer $2"} \
    --max-examples "$examples" --exclude-path-regex 'follow|hints|workers' --continue-on-failure \
    --checks not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance
}
fuzz nobody ""
fuzz "a member" "$member"
fuzz "an administrator" "$(cat "$data/token")"
if grep -E 'panicked|ERROR' "$data/log"; then exit 1; fi
