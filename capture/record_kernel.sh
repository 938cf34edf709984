#!/bin/sh
# Record the slab events of the running kernel into a directory for `slabtape import DIR`.
# Made by `slabtape record --kernel --print-script`; needs root, sh, cat, dd, sleep, uname and tracefs.
#
#	sh script [-a] [-d SECONDS] [-o DIR] [-b KIB_PER_CPU] [-- COMMAND...]
#
# With a command: its processes' events until it ends; with -a, everything meanwhile.  Without
# one: everything for SECONDS, or until SIGINT or SIGTERM.
set -u
all='' seconds='' out=slabtape-kernel kib=32768
while [ $# -gt 0 ]; do
	case $1 in
	-a) all=1; shift ;;
	-d) seconds=$2; shift 2 ;;
	-o) out=$2; shift 2 ;;
	-b) kib=$2; shift 2 ;;
	--) shift; break ;;
	*) echo "usage: $0 [-a] [-d SECONDS] [-o DIR] [-b KIB_PER_CPU] [-- COMMAND...]" >&2; exit 2 ;;
	esac
done
die() { echo "$0: $*" >&2; exit 6; }

root=/sys/kernel/tracing
[ -d $root/instances ] || root=/sys/kernel/debug/tracing
[ -w $root/instances ] || die "no access to tracefs: run as root; mount -t tracefs nodev /sys/kernel/tracing"
[ -d $root/events/kmem/kfree ] || die "this kernel has no kmem events"
mkdir "$out" || exit 7

read -r stat </proc/$$/stat
# Field 22, the start time, tells this instance from one that a dead recorder left.
# shellcheck disable=SC2086
start=$(set -- ${stat##*) }; echo "${20}")
for old in "$root"/instances/slabtape.*; do
	pid=${old##*/slabtape.}
	[ -d "/proc/${pid%%.*}" ] || rmdir "$old" 2>/dev/null
done
in=$root/instances/slabtape.$$.$start
mkdir "$in" || die "cannot make $in"
readers='' rounds=''
# shellcheck disable=SC2086,SC2317
finish() {
	[ -z "$readers" ] || kill $readers 2>/dev/null
	[ -z "$readers" ] || wait $readers 2>/dev/null
	rm -f "$out/go" "$out/recording"
	[ -z "$rounds" ] || wait "$rounds"
	rmdir "$in"
}
trap finish EXIT
set_file() { echo "$2" >"$in/$1" || die "cannot write $2 to $in/$1"; }

# cache/file:value, for each cache under the name that the kernel uses for it
dump_slab() {
	names=" $(while read -r name _; do echo "$name"; done </proc/slabinfo | tr '\n' ' ')"
	for cache in /sys/kernel/slab/*; do
		name=${cache##*/}
		case $names in *" $name "*) ;; *) continue ;; esac
		for file in "$cache"/*; do
			case $file in *_calls | *_traces | */shrink | */validate) continue ;; esac
			line=''
			{ read -r line <"$file"; } 2>/dev/null
			[ -z "$line" ] || echo "$name/${file##*/}:$line"
		done
	done
}
snapshot() {
	if [ -r /sys/kernel/slab ]; then dump_slab >"$out/slab.$1"; else cat /proc/slabinfo >"$out/slabinfo.$1"; fi
}

set_file tracing_on 0
set_file trace_clock mono
set_file buffer_size_kb "$kib"
set_file options/overwrite 1
for event in kmalloc kmalloc_node kmem_cache_alloc kmem_cache_alloc_node kfree kmem_cache_free; do
	[ -d "$in/events/kmem/$event" ] || continue
	cat "$root/events/kmem/$event/format" >>"$out/formats"
done
cat $root/events/ftrace/print/format >>"$out/formats"
cat $root/events/header_page >"$out/header_page"
echo mono >"$out/clock"
uname -r >"$out/release"
cat /proc/kallsyms >"$out/kallsyms"
# Where the kernel maps memory; without it addresses say their node only when there is one node.
dd if=/proc/kcore of="$out/kcore" bs=4096 count=1 2>/dev/null || rm -f "$out/kcore"
if [ -f "$out/kcore" ] || [ ! -d /sys/devices/system/node/node1 ]; then
	cat /proc/zoneinfo >"$out/zoneinfo"
fi
topology=''
for node in /sys/devices/system/cpu/cpu[0-9]*/node*; do
	[ -d "$node" ] || continue
	cpu=${node#/sys/devices/system/cpu/cpu}
	topology=$topology,${cpu%%/*}:${node##*/node}
done
[ -z "$topology" ] || echo "${topology#,}" >"$out/topology"

page=4
[ ! -f "$in/buffer_subbuf_size_kb" ] || read -r page <"$in/buffer_subbuf_size_kb"
page=$((page * 1024))
echo $page >"$out/page_bytes"

# The command waits for a line, so that nothing of it comes before tracing.
child=''
if [ $# -gt 0 ]; then
	mkfifo "$out/go"
	(read -r _ <"$out/go" && exec "$@") &
	child=$!
fi
take() { dd if="$1/trace_pipe_raw" bs=$page 2>/dev/null >>"$out/${1##*/}.raw"; }
# Since 6.8 dd sees the end of what is there; before that it waits, and each CPU needs a reader.
take "$in/per_cpu/cpu0" &
sleep 1
: >"$out/recording"
if kill $! 2>/dev/null; then
	for cpu in "$in"/per_cpu/cpu*; do
		take "$cpu" &
		readers="$readers $!"
	done
else
	while [ -f "$out/recording" ]; do
		for cpu in "$in"/per_cpu/cpu*; do take "$cpu"; done
		sleep 1
	done &
	rounds=$!
fi
# The recorder's own work would feed itself.
filter=''
if [ -f "$in/set_event_notrace_pid" ]; then
	set_file set_event_notrace_pid "$$ $rounds $readers"
else
	filter="common_pid != $$"
	for pid in $readers $rounds; do filter="$filter && common_pid != $pid"; done
fi
set_file options/event-fork 1
[ -z "$child" ] || [ -n "$all" ] || set_file set_event_pid "$child"
for event in "$in"/events/kmem/kmalloc "$in"/events/kmem/kfree "$in"/events/kmem/kmalloc_node \
	"$in"/events/kmem/kmem_cache_alloc "$in"/events/kmem/kmem_cache_alloc_node "$in"/events/kmem/kmem_cache_free; do
	[ -d "$event" ] || continue
	event=${event#"$in"/}
	[ -z "$filter" ] || set_file "$event/filter" "$filter"
	set_file "$event/enable" 1
done

pause=''
status=0
trap '[ -z "$pause" ] || kill $pause 2>/dev/null; stopped=1' INT TERM
stopped=''
snapshot before
set_file tracing_on 1
echo slabtape:BEGIN >"$in/trace_marker"
if [ -n "$child" ]; then
	echo go >"$out/go"
	wait "$child"
	status=$?
	if [ -n "$stopped" ]; then kill "$child" 2>/dev/null; wait "$child"; status=$?; fi
else
	while [ -z "$stopped" ]; do
		sleep "${seconds:-3600}" &
		pause=$!
		wait $pause
		[ -z "$seconds" ] || break
	done
	[ -z "$stopped" ] || kill $pause 2>/dev/null
fi
echo slabtape:END >"$in/trace_marker"
set_file tracing_on 0
snapshot after
cat $root/saved_cmdlines >"$out/saved_cmdlines"
# What is in the buffers still comes.
rm "$out/recording"
sleep 1
# shellcheck disable=SC2086
[ -z "$readers" ] || { kill $readers; wait $readers; } 2>/dev/null
readers=''
if [ -n "$rounds" ]; then
	wait "$rounds"
	rounds=''
	for cpu in "$in"/per_cpu/cpu*; do take "$cpu"; done
fi
for cpu in "$in"/per_cpu/cpu*; do
	cat "$cpu/stats" >"$out/${cpu##*/}.stats"
done
echo "$out: done; slabtape import $out" >&2
exit $status
