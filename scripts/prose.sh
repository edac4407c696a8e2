#!/bin/sh
# Finds habits that make sentences hard to read: "cannot" in two words, and people or
# things without a name as the subject. Questions may begin with "who" and "what".
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
(^|// |-- )What (is|was|has|it|they|only) "

found=$(git grep -nE "$(printf '%s' "$patterns" | tr '\n' '|')" -- \
	'*.go' '*.md' '*.lua' '*.sql' '*.sh' Makefile ':!scripts/prose.sh' | grep -v '?' || true)
if [ -n "$found" ]; then
	echo 'name the subject ("a waiter", "the holder", "a reply"), write "cannot", and call a queue a queue:'
	printf '%s\n' "$found"
	exit 1
fi
