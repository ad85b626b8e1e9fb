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
worker=0
stop() {
  stopping=1
  [ "$worker" -gt 0 ] && kill -TERM "$worker" 2>/dev/null
}
trap stop TERM INT

while :; do
  longhaul worker "$@" &
  worker=$!
  while kill -0 "$worker" 2>/dev/null; do wait "$worker"; done
  wait "$worker"
  code=$?
  [ "$stopping" -eq 1 ] && exit 0
  # A mistake in its command line or configuration does not get better by trying again.
  [ "$code" -eq 2 ] && exit 2
  echo "worker ended with $code; starting it again" >&2
  sleep 1
done
