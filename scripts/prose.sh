#!/bin/sh
# Finds two habits that make sentences hard to read: "cannot" in two words, and
# "Who ..." as the subject of a sentence. Questions may begin with it.
# CONTRIBUTING.md says how sentences read here.
set -eu
cd "$(dirname "$0")/.."

found=$(git grep -nE '\b[Cc]an not\b|(^|[.:;!] |// |# |-- |\| |")Who(ever)? [a-z]' -- \
	'*.go' '*.md' '*.lua' '*.sh' Makefile ':!scripts/prose.sh' | grep -v '?' || true)
if [ -n "$found" ]; then
	echo 'name the subject ("a waiter", "the holder"), and write "cannot":'
	printf '%s\n' "$found"
	exit 1
fi
