#!/bin/sh
# Finds habits that make sentences hard to read: "cannot" in two words, people or things
# without a name as the subject, and old or odd turns of phrase ("but for", "can be had"). Questions may begin with "who" and "what".
# CONTRIBUTING.md says how sentences read here.
set -eu
cd "$(dirname "$0")/.."

start='(^|[.:;!] |// |# |-- |\| |")'
patterns="\b[Cc]an not\b
${start}Who(ever)? [a-z]
\b([Oo]ne|[Tt]hose|[Tt]hey|[Ss]omebody|[Ee]verybody|[Aa]ll) who\b
\b(the same|and|but|that|of|if), who [a-z]
(Errorf?|Fatalf?|New)\(\"who [a-z]
[;:\"] ?who (waits|asks|comes|tries|gives|gave|releases|left|was|is) 
\b[Ww]hoever\b
\bfor good\b
\b(first|next|last|ahead|stands?|stood|places?|back) in line\b
\b(leaves?|leaving|left|joins?|joined|enters?|entered) the line\b
(^|// |-- )What (is|was|has|it|they|only) 
\b[Bb]ut for\b
\b[Ww]hich is no [^l]
\b[Ww]hat there is (to|of|for|gets)\b
\b(can|may|could|cannot)( not)? be had\b
\b(hear|hears|heard) of\b
\b(is|are|was|were|be|been) told that\b
\bof no use\b
\bso that nobody\b
^// [A-Za-z]+ says (whether|if)\b
\b(lease|leases|permission|holder|client) of (etcd|ZooKeeper|Curator)'s[ ,.]"

found=$(git grep -nE "$(printf '%s' "$patterns" | tr '\n' '|')" -- \
	'*.go' '*.md' '*.lua' '*.sql' '*.sh' Makefile ':!scripts/prose.sh' | grep -v '?' || true)
if [ -n "$found" ]; then
	echo 'name the subject ("a waiter", "the holder", "a reply"), write "cannot", call a queue a queue, and use plain words (scripts/prose.sh has the patterns):'
	printf '%s\n' "$found"
	exit 1
fi
