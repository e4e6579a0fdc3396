#!/usr/bin/env bash
# Sends requests made from docs/openapi.json to a live server, as everybody from nobody to an administrator: no answer may be a 5xx or
# differ from its description. usage: [ROLES="member administrator"] [SEED=1] fuzz.sh DANLU [EXAMPLES]
set -euo pipefail
# shellcheck source=scripts/paths.sh
. "$(dirname "$0")/../paths.sh"
danlu="$(realpath "$1")"
examples="${2:-25}"
seed="${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
roles="${ROLES:-nobody viewer member owner administrator}"
say "SEED=$seed"
venv="$("$ROOT/scripts/venv.sh" "$ROOT/scripts/api/requirements.txt")"

data="$(mktemp -d)"
"$danlu" --data "$data" up --listen 127.0.0.1:0 --simulate 1x8:ascend:910B3 --registration open >"$data/log" 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$data"' EXIT
until "$danlu" --data "$data" nodes >/dev/null 2>&1; do kill -0 "$server"; sleep 0.1; done
address="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["address"])' "$data/server.json")"

"$danlu" --data "$data" submit --cpus 100m -- sleep 1000 >/dev/null 2>&1
# One job runs, to be asked about. What is submitted from here on waits: hundreds of jobs that start would be a test of this machine.
until "$danlu" --data "$data" show 1 2>/dev/null | grep -q running; do kill -0 "$server"; sleep 0.1; done
"$danlu" --data "$data" nodes cordon sim-ascend-910b3-0 --why "requests are tried" >/dev/null 2>&1
export XDG_CONFIG_HOME="$data/config"
"$danlu" --data "$data" admin workspace create lab >/dev/null 2>&1
# token_of ROLE: of somebody who has this role in a workspace, and nothing else.
token_of() {
  local link
  link="$("$danlu" --data "$data" admin user add "the-$1" 2>/dev/null)"
  echo "correct horse battery" | "$danlu" password --link "$link" 2>/dev/null
  "$danlu" --data "$data" workspace members lab add "the-$1" --role "$1" >/dev/null 2>&1
  echo "correct horse battery" | "$danlu" --profile "$1" login "the-$1" --server "$address" 2>/dev/null
  echo "correct horse battery" | "$danlu" --profile "$1" tokens add fuzz --scope all 2>/dev/null
}

# Streams and terminals have no end, or none that HTTP describes. Whoever signs out is nobody from then on.
fuzz() {
  say "== as $1"
  cd "$data" # where it may leave its notes
  "$venv/bin/schemathesis" --config-file "$ROOT/scripts/api/schemathesis.toml" run "$ROOT/docs/openapi.json" --url "$address/api/v1" ${2:+-H "Authorization: Bearer $2"} \
    --max-examples "$examples" --seed "$seed" --exclude-path-regex 'follow|hints|workers' --exclude-operation-id sign_out --continue-on-failure \
    --checks not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance,negative_data_rejection,positive_data_acceptance
}
# What one finds out about the platform must not keep the others from being asked.
failed=0
for role in $roles; do
  case "$role" in
    nobody) fuzz nobody "" || failed=1 ;;
    administrator) fuzz "an administrator" "$(cat "$data/token")" || failed=1 ;;
    *) fuzz "a workspace's $role" "$(token_of "$role")" || failed=1 ;;
  esac
done
[ "$failed" = 0 ]
if grep -E 'panicked|ERROR' "$data/log"; then exit 1; fi
