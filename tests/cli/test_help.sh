#!/bin/sh
# SPDX-License-Identifier: MIT
# slabtape help and completion: every verb, every option, scripts that shells accept.
. "${0%/*}/lib.sh"

"$slabtape" help >verbs || fail "help"
"$slabtape" --help | cmp -s - verbs || fail "help and --help differ"
for shell in bash zsh fish; do
	"$slabtape" completion $shell >$shell || fail "completion $shell"
done
bash -n bash || fail "bash does not accept its script"
nr=0
for verb in $(sed -n 's/^  \([a-z]*\) .*/\1/p' verbs); do
	nr=$((nr + 1))
	"$slabtape" help "$verb" >one || fail "help $verb"
	"$slabtape" "$verb" --help | cmp -s - one || fail "$verb --help is not help $verb"
	grep -q "^usage: slabtape $verb" one || fail "$verb: no usage line"
	"$slabtape" help --scdoc "$verb" >scdoc || fail "help --scdoc $verb"
	for option in $(sed -n 's/^  \(-., \)\{0,1\}--\([a-z-]*\).*/\2/p' one); do
		grep -q -e "^\*--$option\*\|, \*--$option\*" scdoc || fail "$verb --$option: not in the manual"
		grep -q -e "$verb' -l $option " fish || fail "$verb --$option: not in fish"
		grep -q -e "--$option\[\|,--$option}" zsh || fail "$verb --$option: not in zsh"
		grep -q -e "$verb) words='.* --$option[ ']" bash || fail "$verb --$option: not in bash"
	done
done
[ $nr -ge 10 ] || fail "only $nr verbs"

# What bash offers.
words=$(bash -c '. ./bash; COMP_WORDS=(slabtape replay --warm ""); COMP_CWORD=3; _slabtape
	echo "${COMPREPLY[@]}"; COMP_WORDS=(slabtape impo); COMP_CWORD=1; _slabtape
	echo "${COMPREPLY[@]}"')
[ "$words" = "orphans address snapshot none
import" ] || fail "bash offers $words"

"$slabtape" help nothing 2>err && fail "help of no verb"
grep -q 'nothing: no such verb' err || fail "no message"
"$slabtape" completion tcsh 2>err
[ $? = 2 ] || fail "completion tcsh"
exit $failed
