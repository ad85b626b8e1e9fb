/**
 * The supervisor of one background shell job (spec/jobs J8, J9, J23), in a session of its own, in the spool directory.
 * Arguments: command, cwd, the marks call, session and home, token as JSON, cap in bytes, orphan grace in ms, lease file,
 * grace in ms, the copier's script. Its own environment is the command's without the marks, so that it never counts as one
 * of the job's processes. Files it makes: \`identity.json\` before the command runs, \`stopping\`, \`stuck\`, \`end.json\`.
 *
 * The command's parent is a \`cat\` that never collects it: so its group's number is not used again before the supervisor is
 * done, and its exit status is read from /proc as it is, where a shell's own \`wait\` says 143 for \`exit 143\` and TERM alike.
 */
export const supervisorScript = `
lh_command=$1 lh_cwd=$2 lh_call=$3 lh_session=$4 lh_home=$5 lh_token=$6 lh_cap=$7 lh_orphan=$8 lh_lease=$9
lh_grace=\${10} lh_copier=\${11} lh_spool=$PWD lh_path=$PATH lh_by=exit lh_k1= lh_k2= lh_pid= lh_keeper=
PATH=$PATH:/usr/bin:/bin
trap : HUP INT TERM PIPE
for lh_tool in mkfifo grep dd cat mv readlink; do
  command -v "$lh_tool" >/dev/null || { echo "$lh_tool is not on PATH" >&2; exit 1; }
done
mkfifo -m 600 poke gate hold out err || exit 1
exec 6<>poke 7<>gate 8<>hold

# Fields from the state on: 0 state, 2 process group, 19 start time, 49 exit status.
stat_of() {
  lh_line=
  { IFS= read -r -d '' lh_line <"/proc/$1/stat"; } 2>/dev/null
  set -f
  lh_fields=(\${lh_line##*) })
  set +f
  [ -n "$lh_line" ]
}
members() {
  LC_ALL=C grep -qsE "\\) [^ZX] [0-9]+ $lh_pid " /proc/[0-9]*/stat
  # 2: a process vanished meanwhile. What could not even look has not seen that all is gone.
  case $? in 1 | 2) return 1 ;; esac
  return 0
}
strays() {
  local lh_file lh_found=
  for lh_file in $(LC_ALL=C grep -lzxF -e "LONGHAUL_CALL=$lh_call" /proc/[0-9]*/environ 2>/dev/null); do
    LC_ALL=C grep -qzxF -e "LONGHAUL_SESSION_ID=$lh_session" "$lh_file" 2>/dev/null || continue
    LC_ALL=C grep -qzxF -e "LONGHAUL_HOME=$lh_home" "$lh_file" 2>/dev/null || continue
    lh_file=\${lh_file#/proc/}
    lh_found="$lh_found \${lh_file%/environ}"
  done
  lh_strays=$lh_found
  [ -n "$lh_found" ]
}
running() {
  stat_of "$lh_pid" && [ "\${lh_fields[0]}" != Z ] && [ "\${lh_fields[0]}" != X ]
}
alive() {
  running || members || strays
}
signal_all() {
  kill -"$1" -- "-$lh_pid"
  strays && kill -"$1" $lh_strays
} 2>/dev/null
pause() {
  read -r -t "$1" -n 1 -u 8
}
# True when all is gone.
stop() {
  lh_by=$1
  : >stopping
  signal_all TERM
  local lh_left=$((lh_grace / 100))
  while [ "$lh_left" -gt 0 ]; do alive || return 0; pause 0.1; lh_left=$((lh_left - 1)); done
  lh_left=20
  while alive; do
    signal_all KILL
    pause 0.1
    lh_left=$((lh_left - 1))
    [ "$lh_left" -gt 0 ] || { : >stuck; return 1; }
  done
  return 0
}
copying() {
  kill -0 "$lh_k1" || kill -0 "$lh_k2"
} 2>/dev/null
abandon() {
  for lh_group in $lh_pid $lh_keeper $lh_k1 $lh_k2; do kill -KILL -- "-$lh_group"; done
  exit 1
} 2>/dev/null

set -m
sh -c "$lh_copier" longhaul-copy 1 "$lh_cap" <out >/dev/null 2>&1 7>&- 8>&- &
lh_k1=$!
sh -c "$lh_copier" longhaul-copy 2 "$lh_cap" <err >/dev/null 2>&1 7>&- 8>&- &
lh_k2=$!
(
  set -m
  (
    set +m
    trap - HUP INT TERM PIPE
    read -r -t 30 -u 7 lh_go && [ "$lh_go" = go ] || exit 125
    exec </dev/null >out 2>err 6>&- 7>&- 8>&-
    cd -- "$lh_cwd" || exit 125
    unset OLDPWD
    export LONGHAUL_HOME="$lh_home" LONGHAUL_SESSION_ID="$lh_session" LONGHAUL_CALL="$lh_call"
    PATH=$lh_path
    exec "$BASH" -c "$lh_command"
  ) &
  echo $! >&6
  exec cat <hold >/dev/null 2>&1 6>&- 7>&- 8>&-
) &
lh_keeper=$!
set +m
read -r -t 10 -u 6 lh_pid || abandon

stat_of $$ || abandon
lh_own=\${lh_fields[19]}
stat_of "$lh_pid" || abandon
read -r lh_boot </proc/sys/kernel/random/boot_id
printf '{"pid":%s,"startTime":"%s","bootId":"%s","pidNamespace":"%s","supervisor":{"pid":%s,"startTime":"%s"},"token":%s}\\n' \\
  "$lh_pid" "\${lh_fields[19]}" "$lh_boot" "$(readlink /proc/self/ns/pid)" $$ "$lh_own" "$lh_token" |
  dd of=identity.tmp conv=fsync 2>/dev/null || abandon
mv identity.tmp identity.json || abandon
# The sealer writes its mark first and reads the identity second, so one of the two sees the other.
[ -e sealed ] && abandon
echo go >&7

# The lease is told by ticks that passed here, not by the clock: a machine that slept has lost nothing.
lh_tick=$((lh_orphan / 20))
[ "$lh_tick" -ge 200 ] || lh_tick=200
[ "$lh_tick" -le 5000 ] || lh_tick=5000
lh_wait=$lh_tick lh_next=20 lh_missed=0 lh_beat= lh_last=
while :; do
  printf -v lh_seconds '%d.%03d' $((lh_wait / 1000)) $((lh_wait % 1000))
  lh_word=
  IFS= read -r -t "$lh_seconds" -n 1 -u 6 lh_word || lh_missed=$((lh_missed + lh_wait))
  [ -e kill ] && [ "$lh_by" = exit ] && stop kill && break
  lh_beat=
  { read -r lh_beat <"$lh_lease"; } 2>/dev/null
  if [ -n "$lh_beat" ] && [ "$lh_beat" != "$lh_last" ]; then lh_last=$lh_beat lh_missed=0; fi
  [ "$lh_missed" -ge "$lh_orphan" ] && [ "$lh_by" = exit ] && stop orphan && break
  if running && copying; then lh_wait=$lh_tick lh_next=20; continue; fi
  alive || break
  lh_wait=$lh_next lh_next=$((lh_next * 2))
  [ "$lh_next" -le 2000 ] || lh_next=2000
done

stat_of "$lh_pid"
lh_status=\${lh_fields[49]:-null}
# The kernel hides it for a program of another user, such as sudo.
[ -O "/proc/$lh_pid" ] || lh_status=null
# Only a stranger can still hold the pipes: a process without our group and marks.
lh_left=50
while copying && [ "$lh_left" -gt 0 ]; do pause 0.1; lh_left=$((lh_left - 1)); done
kill -KILL -- "-$lh_k1" 2>/dev/null
kill -KILL -- "-$lh_k2" 2>/dev/null
printf '{"status":%s,"by":"%s"}\\n' "$lh_status" "$lh_by" >end.tmp && mv end.tmp end.json
rm -f poke gate hold out err
`;
