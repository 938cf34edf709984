#!/bin/sh
# SPDX-License-Identifier: MIT
# A tape is replaced when the new one is whole; whatever fails, the old one stays as it was.
. "${0%/*}/lib.sh"

# nothing_beside: no draft, journal or half tape lies about.
nothing_beside()
{
	[ "$(ls old.tape*)" = old.tape ] || fail "$1 leaves $(ls old.tape*)"
}

"$slabtape" gen uniform --events 5000 -q -o old.tape || fail "gen"
before=$(cksum <old.tape)
zstd -q -d "$tests/data/6.1-first-second.v6.dat.zst" -o whole.dat || fail "zstd"
head -c 300000 whole.dat >half.dat
"$slabtape" import -q -f -o old.tape half.dat 2>err
[ $? = 3 ] || fail "half a trace.dat: exit"
"$slabtape" record -q -f -o old.tape --native -- ./no-such-program 2>err
[ $? = 127 ] || fail "record of nothing: exit"
"$slabtape" cut old.tape -f -o old.tape --from nowhere 2>err && fail "cut from nowhere"
"$slabtape" gen uniform --param nothing=1 -q -f -o old.tape 2>err && fail "gen with no such parameter"
[ "$before" = "$(cksum <old.tape)" ] || fail "the old tape has changed"
nothing_beside "failure"

"$slabtape" import -q -f -o whole.dat whole.dat 2>err
[ $? = 2 ] || fail "import onto its source: exit"
"$slabtape" import -q -o old.tape whole.dat 2>err && fail "import over a tape without -f"
[ "$before" = "$(cksum <old.tape)" ] || fail "the old tape has changed without -f"
"$slabtape" import -q -f -o old.tape whole.dat || fail "import -f"
"$slabtape" cut old.tape -f -o old.tape --cpu 0 >/dev/null || fail "cut onto itself"
"$slabtape" verify old.tape >out || fail "verify: $(cat out)"
nothing_beside "success"

# A killed import leaves the old tape; what it had done lies beside and is a tape.
before=$(cksum <old.tape)
mkfifo pipe
"$slabtape" import -q -f -o old.tape pipe &
pid=$!
i=0
exec 9>pipe
while [ "$(ls old.tape*)" = old.tape ] && [ $i -lt 100 ]; do
	sleep 0.05
	i=$((i + 1))
done
kill -9 $pid
wait $pid 2>/dev/null
exec 9>&-
[ "$before" = "$(cksum <old.tape)" ] || fail "a killed import changes the old tape"
"$slabtape" info "old.tape.$pid-new" >out 2>&1 || fail "what a killed import leaves: $(cat out)"
exit $failed
