#!/bin/sh
# A Pawl worker in sh, with curl and jq: one task at a time. docs/worker-protocol.md explains the protocol.
#
#   PAWL_SERVER=http://127.0.0.1:7295 PAWL_QUEUES=conformance sh worker.sh
#
# Put your own work into `handle`. The clock of sh counts whole seconds, so leases must last at least about 5 s.
set -u
server=${PAWL_SERVER:-http://127.0.0.1:7295}
queues=${PAWL_QUEUES:-conformance}
drain=${PAWL_DRAIN_SECONDS:-30}
wait_seconds=4 # how long a claim waits at the server; a SIGTERM is noticed after that
session=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen)
name=$(hostname)-$$-${session%%-*}
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
stopping=
trap 'stopping=yes; [ -e "$room/deadline" ] || echo $(($(now) + drain)) >"$room/deadline"' TERM INT
# In a file, because arguments are visible in the process list, and the key is a secret.
(umask 077; printf 'content-type: application/json\n%s' "${PAWL_KEY:+authorization: Bearer $PAWL_KEY}" >"$room/headers")

# Runs task $1 (JSON) and prints its report, in a process of its own. SIGTERM stops it.
handle() {
  child=
  trap 'kill $child 2>/dev/null; exit 143' TERM
  type=$(field "$1" .type)
  if [ "$type" != conformance ]; then
    jq -n --arg type "$type" '{outcome: "failed", error: {message: "This worker has no handler for tasks of type \($type)."}}'
    return
  fi
  what=$(field "$1" '. as $t | .payload | if $t.attempt > (.times // $t.attempt) then "succeed" else .do end')
  if [ "$what" = sleep ]; then
    sleep "$(field "$1" .payload.seconds)" &
    child=$!
    wait $child
  fi
  printf '%s' "$1" | jq -c --arg what "$what" '.payload |
    {message: (.message // "asked to \($what)")} as $error |
    if $what == "fail" then {outcome: "failed", error: $error}
    elif $what == "giveUp" then {outcome: "failed", error: ($error + {permanent: true})}
    elif $what == "retryIn" then {outcome: "failed", error: ($error + {retryInSeconds: .seconds})}
    else {outcome: "succeeded", output} end'
}

field() { printf '%s' "$1" | jq -r "$2"; }
now() { date +%s; }
overdue() { [ -e "$room/deadline" ] && [ "$(now)" -ge "$(cat "$room/deadline")" ]; }
journal() { if [ -n "${PAWL_JOURNAL:-}" ]; then echo "$1 $id $epoch" >>"$PAWL_JOURNAL"; fi; }

# Sends one sync with the fields in $1, and prints the answer. Returns 1 if it may be sent again, 2 if it was refused.
sync() {
  body=$(printf '%s' "$1" | jq -c --arg session "$session" --arg queues "$queues" \
    '. + {session: $session, queues: ($queues | split(","))}')
  reply=$(printf '%s' "$body" | curl -sS --max-time $((wait_seconds + 5)) -w '\n%{http_code}' \
    -H "@$room/headers" --data-binary @- "$server/v1/workers/$name/sync") || return 1
  status=${reply##*
}
  case $status in
    200) printf '%s' "${reply%
*}" ;;
    408 | 429 | 5??) return 1 ;;
    *) printf '%s\n' "$reply" >&2; return 2 ;;
  esac
}

# Repeats a sync with growing pauses until it is answered, or until the deadline of a stop.
until_answered() {
  pause=1
  until sync "$1"; do
    [ $? = 2 ] && return 2
    overdue && return 1
    sleep $pause
    pause=$((pause < 4 ? pause * 2 : 4))
  done
}

settle() { # $1: the report, without its lease
  parts=$(printf '%s' "$1" | jq -c --argjson lease "$lease" '{settled: [$lease + .]}')
  code=$(until_answered "$parts" | jq -r '.refused[0].code // "OK"')
  case $code in
    OK | LEASE_LOST) ;;
    *) until_answered "{\"settled\": [$(printf '%s' "$lease" | jq -c --arg code "$code" \
      '. + {outcome: "failed", error: {message: "The report was refused: \($code)"}}')]}" >/dev/null ;;
  esac
}

# Stops the handler. The reason is kept in a file, because background processes call this too. The first reason counts.
interrupt() {
  [ -e "$room/why" ] || echo "$1" >"$room/why"
  kill "$handler" 2>/dev/null
}

# Renews the lease, and watches the deadline of a stop. If the lease cannot be renewed, it ends by our own clock, even if
# the server has sent nothing.
keep_beating() {
  every=$((lease_seconds / 3 > 0 ? lease_seconds / 3 : 1))
  while :; do
    sent=$(now)
    if answer=$(sync "{\"started\": [$lease], \"beats\": [$lease]}"); then
      case $(field "$answer" 'if .refused[0].code == "LEASE_LOST" then "lost" elif .cancel[0] then "cancelled" else "" end') in
        lost) interrupt lost; return ;;
        cancelled) interrupt cancelled ;;
        *) lease_end=$((sent + lease_seconds)) ;;
      esac
    fi
    step=0
    while [ $step -lt $every ]; do
      if [ "$(now)" -ge $lease_end ]; then interrupt lost; return; fi
      if overdue; then interrupt shutdown; fi
      sleep 1
      step=$((step + 1))
    done
  done
}

run() {
  rm -f "$room/why"
  journal begin
  handle "$task" >"$room/report" &
  handler=$!
  keep_beating &
  beating=$!
  wait $handler
  status=$?
  # A signal to this process interrupts `wait`, but not the handler.
  while [ $status -gt 128 ] && kill -0 $handler 2>/dev/null; do
    wait $handler
    status=$?
  done
  report='{"outcome": "failed", "error": {"message": "The handler died."}}'
  [ $status = 0 ] && report=$(cat "$room/report")
  kill $beating 2>/dev/null
  wait $beating
  journal end
  case $(cat "$room/why" 2>/dev/null) in
    lost) ;; # another worker may hold it by now, so our report would not count
    cancelled) settle '{"outcome": "cancelled"}' ;;
    shutdown) settle '{"outcome": "released", "reason": "The worker is shutting down."}' ;;
    *) settle "$report" ;;
  esac
}

syncs=1
while [ -z "$stopping" ]; do
  asked=$(now)
  # Repeated with the same syncId until it is answered, so that no claimed task is lost.
  answer=$(sync "{\"claim\": 1, \"syncId\": \"$syncs\", \"waitSeconds\": $wait_seconds}")
  case $? in
    1) sleep 1; continue ;;
    2) exit 1 ;;
  esac
  syncs=$((syncs + 1))
  task=$(field "$answer" '.claimed[0] // empty | tojson')
  [ -n "$task" ] || continue
  id=$(field "$task" .id)
  epoch=$(field "$task" .epoch)
  lease="{\"id\": \"$id\", \"epoch\": $epoch}"
  lease_seconds=$(field "$task" '.leaseSeconds | floor')
  lease_end=$((asked + lease_seconds + $(field "$answer" '.waitedMs / 1000 | floor')))
  if [ -n "$stopping" ]; then
    settle '{"outcome": "released", "reason": "The worker is shutting down."}'
    continue
  fi
  # A careful task may have killed a worker before, so it runs only after its start is acknowledged.
  if [ "$(field "$task" .careful)" = true ]; then
    started=$(until_answered "{\"started\": [$lease]}")
    [ "$(field "$started" '.refused | length')" = 0 ] || continue
  fi
  run
done
exit 0
