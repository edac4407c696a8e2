package zkstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Words of kinds in the names of places. A mutex has that of Curator and go-zookeeper, and a
// read-write lock those of Curator (InterProcessReadWriteLock), in the same node.
//
// A semaphore has the word of a mutex as well, behind its weight and its size, such as
// -2of5-lock-. Other clients that take it for a mutex wait for it. Curator's own semaphore
// is no model: it does not write down its size, so that two processes can disagree about
// it unnoticed, it has no weights and no numbered permits, and it makes and removes a mutex
// for each permit.
const (
	lockWord  = "-lock-"
	readWord  = "-__READ__"
	writeWord = "-__WRIT__"

	limitWord  = "of"
	sharedWord = "ofshared"
)

// kindWord returns the word of a kind and a weight.
func kindWord(spec rule.Spec, weight int64) string {
	switch {
	case spec == rule.Mutex:
		return lockWord
	case spec == rule.ReadWrite && weight == 1:
		return readWord
	case spec == rule.ReadWrite && weight == spec.Limit:
		return writeWord
	case spec.Shared:
		return fmt.Sprintf("-%d%s%d%s", weight, sharedWord, spec.Limit, lockWord)
	}
	return fmt.Sprintf("-%d%s%d%s", weight, limitWord, spec.Limit, lockWord)
}

// parseKind returns the kind and the weight of a place, by what its name has before the
// number. Names without a word of ours are those of mutexes.
func parseKind(name string) (rule.Spec, int64) {
	switch {
	case strings.HasSuffix(name, readWord[1:]):
		return rule.ReadWrite, 1
	case strings.HasSuffix(name, writeWord[1:]):
		return rule.ReadWrite, rule.ReadWriteLimit
	}
	rest, ok := strings.CutSuffix(name, lockWord)
	if !ok {
		return rule.Mutex, 1
	}
	word := rest[strings.LastIndexByte(rest, '-')+1:]
	for _, kind := range []string{sharedWord, limitWord} {
		w, l, ok := strings.Cut(word, kind)
		if !ok {
			continue
		}
		weight, err1 := strconv.ParseInt(w, 10, 64)
		limit, err2 := strconv.ParseInt(l, 10, 64)
		spec := rule.Spec{Limit: limit, Shared: kind == sharedWord}
		if err1 == nil && err2 == nil && 1 <= weight && weight <= limit && strings.HasSuffix(name, kindWord(spec, weight)) {
			return spec, weight
		}
	}
	return rule.Mutex, 1
}

func specOf(k store.Kind) rule.Spec { return rule.Spec(k.Normal()) }

// kindOf returns the kind as store.State and store.KindError have it.
func kindOf(s rule.Spec) store.Kind { return store.Kind(s) }

// hasSeats reports whether holders of that kind have slots of their own. Readers are told
// apart by their numbers.
func hasSeats(s rule.Spec) bool { return s.Limit > 1 && s != rule.ReadWrite }
