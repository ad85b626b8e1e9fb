/**
 * Holds the command back until its identity is on disk; a worker that dies before that closes the pipe, and nothing runs.
 * Arguments: command, stdout FIFO, stderr FIFO. FIFOs, because Node's own pipes are sockets, which
 * `/dev/stdout` and `/dev/stderr` cannot reopen.
 */
export const gateScript = `
IFS= read -r go <&3 || exit 125
[ "$go" = go ] || exit 125
exec 3<&- >"$2" 2>"$3" || exit 125
exec "$BASH" -c "$1"
`;

/** Seconds without a beat after which a command is ended (design D6). */
export const beatPatienceSeconds = 4;

/**
 * The watch over one command: carries its output, and ends it when the worker is gone or frozen.
 * Descriptors: 1 and 2 the output, 3 the worker's beats (\`q\`: the command is over), 4 reports to the worker.
 * Arguments: process group, FIFO directory, the marks call, session and home, beat patience, grace.
 * Runs in bash 3.2 too, and in a session of its own, so that it may kill all its own helpers at the end.
 */
export const watchScript = `
group=$1 fifos=$2 call=$3 session=$4 home=$5 patience=$6 grace=$7
trap : HUP INT TERM PIPE
mkfifo -m 600 "$fifos/stdout" "$fifos/stderr" || exit 1
cat <"$fifos/stdout" 2>/dev/null 3<&- 4>&- &
cat <"$fifos/stderr" >&2 2>/dev/null 3<&- 4>&- &
exec >/dev/null 2>&1
echo ready >&4
while IFS= read -r -t "$patience" -n 1 -u 3 beat; do
  [ "$beat" = q ] && kill -KILL 0
done
echo lost >&4

strays() {
  [ -r /proc/self/environ ] || return 0
  for file in $(grep -lzxF -e "LONGHAUL_CALL=$call" /proc/[0-9]*/environ); do
    grep -qzxF -e "LONGHAUL_SESSION_ID=$session" "$file" && grep -qzxF -e "LONGHAUL_HOME=$home" "$file" || continue
    file=\${file#/proc/}
    echo "\${file%/environ}"
  done
}
stop() {
  kill -"$1" -- "-$group"
  for pid in $(strays); do kill -"$1" "$pid"; done
}
alive() {
  kill -0 -- "-$group" || [ -n "$(strays)" ]
}

stop TERM
ticks=0
while alive && [ "$ticks" -lt $((grace * 5)) ]; do sleep 0.2; ticks=$((ticks + 1)); done
ticks=0
while alive && [ "$ticks" -lt 10 ]; do stop KILL; sleep 0.2; ticks=$((ticks + 1)); done
kill -KILL 0
`;
