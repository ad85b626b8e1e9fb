/**
 * Carries one output stream of a job from its pipe into segments of at most 1 MiB, and drops the oldest beyond the cap
 * (spec/jobs J23). Arguments: stream (1 or 2), cap in bytes. Standard input: the pipe; descriptor 6: the supervisor's FIFO.
 * A segment is named \`<stream>.<offset of its first byte + segmentBase>\`: all names have one width, none is read as octal.
 * \`dd\` with small blocks, because it writes what it has at once; its own count is exact where the number of its blocks is not.
 */
export const copierScript = `
stream=$1 cap=$2 other=$((3 - $1))
start=1000000000000000 size=0
trap '' HUP INT TERM PIPE

drop_oldest() {
  while :; do
    set -- "$stream".1*
    mine=0 first=
    if [ -e "$1" ] && [ "$1" != "$stream.$start" ]; then first=$1; mine=$((start - \${1#*.})); fi
    set -- "$other".1*
    theirs=0 their_first=
    if [ -e "$1" ]; then
      eval "last=\\\${$#}"
      [ $# -gt 1 ] && their_first=$1
      theirs=$((\${last#*.} - \${1#*.} + 1048576))
    fi
    [ $((mine + theirs)) -le "$cap" ] && return
    if [ -n "$their_first" ] && [ "$theirs" -gt "$mine" ]; then rm -f "$their_first" || return
    elif [ -n "$first" ]; then rm -f "$first" || return
    else return; fi
  done
}
counted() {
  bytes=\${report##*
}
  bytes=\${bytes%% *}
  case $bytes in '' | *[!0-9]*) bytes=0 ;; esac
}

while :; do
  if report=$(LC_ALL=C dd bs=1024 count=$(((1048576 - size) / 1024)) 2>&1 >>"$stream.$start"); then
    counted
    [ "$bytes" -eq 0 ] && break
    size=$((size + bytes))
    [ "$size" -gt 983040 ] || continue
  else
    # The disk is full or gone: the command goes on, and what it prints meanwhile is dropped and counted.
    counted
    size=$((size + bytes))
    report=$(LC_ALL=C dd bs=1024 count=1024 2>&1 >/dev/null) || break
    counted
    [ "$bytes" -eq 0 ] && break
    size=$((size + bytes))
  fi
  start=$((start + size)) size=0
  drop_oldest
done
printf . >&6
`;
