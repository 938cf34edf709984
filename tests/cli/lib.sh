# SPDX-License-Identifier: MIT
# Sourced by every test_*.sh: `. "${0%/*}/lib.sh"`, arguments SLABTAPE TESTS.  Leaves the shell in
# a scratch directory; the script ends with `exit $failed`.
# shellcheck disable=SC2034
slabtape=$1
tests=$2
sample=$tests/../traces/samples/src/6.1-netperf0-4c2n
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

fail()
{
	echo "FAIL: $*"
	failed=1
}

# want CODE TEXT COMMAND...: its exit code, and a text in its output.
want()
{
	code=$1 text=$2
	shift 2
	"$@" >out 2>&1
	got=$?
	[ $got = "$code" ] || fail "exit $got, not $code: $*: $(head -c 500 out)"
	grep -q -- "$text" out || fail "no \"$text\" from $*: $(head -c 500 out)"
}
