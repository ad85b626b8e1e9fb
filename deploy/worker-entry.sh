#!/bin/sh
# Runs a worker and starts it again when it dies, so that what it watches in this container outlives it.
# A stop (TERM, INT) reaches the worker, which drains; its end then ends the container.
# Every file in /run/secrets becomes a variable of its name in capitals: deepseek_api_key -> DEEPSEEK_API_KEY.
set -u

for file in /run/secrets/*; do
  [ -f "$file" ] || continue
  name=$(basename "$file" | tr 'a-z.-' 'A-Z__')
  export "$name=$(cat "$file")"
done

stopping=0
told=0
worker=0
# Told once: a second signal would end the worker without draining.
tell() {
  [ "$worker" -gt 0 ] && [ "$told" -eq 0 ] && told=1 && kill -TERM "$worker" 2>/dev/null
}
stop() {
  stopping=1
  tell
}
trap stop TERM INT

while [ "$stopping" -eq 0 ]; do
  longhaul worker "$@" &
  worker=$!
  # A stop that came before the number was known.
  [ "$stopping" -eq 1 ] && tell
  # A signal ends the wait early; then the worker still runs.
  while :; do
    wait "$worker"
    code=$?
    kill -0 "$worker" 2>/dev/null || break
  done
  worker=0
  [ "$stopping" -eq 1 ] && break
  # A mistake in its command line does not get better by trying again.
  [ "$code" -eq 2 ] && exit 2
  echo "worker ended with $code; starting it again" >&2
  sleep 1
done
exit 0
