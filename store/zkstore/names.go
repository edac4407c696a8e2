package zkstore

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Nodes are named as by Curator and go-zookeeper: _c_, 32 hexadecimal digits, a word for
// the kind of the lock (see kindWord), and the sequence number that ZooKeeper appends. All
// of them order places by that number.
const (
	protected  = "_c_"
	markDigits = 32
	seqDigits  = 10
)

// escape returns the name of the node that has the places of a lock. Printable ASCII
// stands for itself, except % and /.
func escape(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= ' ' && c <= '~' && c != '%' && c != '/' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// unescape returns the lock whose places the node has, or false if escape returns no
// such name.
func unescape(node string) (string, bool) {
	name, err := url.PathUnescape(node)
	return name, err == nil && escape(name) == node
}

// ownerMark returns the digits of a place's name that stand for its owner.
func ownerMark(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// newMark returns the 32 digits of a new place of the owner. No other place has them.
func newMark(owner string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return ownerMark(owner) + hex.EncodeToString(b[:])
}

// placeName returns the name of a place of that kind and weight, without the number.
func placeName(mark string, spec rule.Spec, weight int64) string {
	return protected + mark + kindWord(spec, weight)
}

// numbered is a place as its name shows it.
type numbered struct {
	name   string
	seq    int32
	spec   rule.Spec
	weight int64
}

// parseChild returns the place with that name, or false if it has no number.
func parseChild(name string) (numbered, bool) {
	at := len(name) - seqDigits
	if at < 0 {
		return numbered{}, false
	}
	digits := name[at:]
	if strings.Trim(digits, "0123456789") != "" {
		return numbered{}, false
	}
	// The number is 32 bits wide and begins again at the smallest.
	if strings.HasSuffix(name[:at], "--") || strings.HasSuffix(name[:at], "__-") {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	c := numbered{name: name, seq: int32(n)}
	c.spec, c.weight = parseKind(name[:len(name)-len(digits)])
	return c, err == nil
}

// digits returns the number as it stands in the name.
func (c numbered) digits() string {
	if c.seq < 0 {
		return c.name[len(c.name)-seqDigits-1:]
	}
	return c.name[len(c.name)-seqDigits:]
}

// needsOthers reports whether what the place has depends on those before it. A place that
// takes the whole lock is alone.
func (c numbered) needsOthers() bool { return c.weight < c.spec.Limit }

// isOf reports whether the place may be one of the owner with that mark.
func (c numbered) isOf(ownerMark string) bool {
	return c.isNative() && strings.HasPrefix(c.name, protected+ownerMark)
}

// isNative reports whether the place may be one of a Store. Those of go-zookeeper look the
// same, and those of Curator do not.
func (c numbered) isNative() bool {
	mark, _, _ := strings.Cut(strings.TrimPrefix(c.name, protected), "-")
	return len(mark) == markDigits && len(c.name) > len(protected)+markDigits && strings.HasPrefix(c.name, protected)
}

// queue has the places of a lock in order.
type queue []numbered

// queueOf orders the children of a lock's node. Children without a number are no places.
func queueOf(names []string) queue {
	q := make(queue, 0, len(names))
	for _, name := range names {
		if c, ok := parseChild(name); ok {
			q = append(q, c)
		}
	}
	slices.SortFunc(q, func(a, b numbered) int {
		if d := a.seq - b.seq; d != 0 { // the difference is right also when the numbers begin again
			return int(d)
		}
		// A thread that writes and reads has two places of one number in Curator.
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.name, b.name))
	})
	return q
}

// find returns the index of the place whose name begins with prefix, or -1.
func (q queue) find(prefix string) int {
	return slices.IndexFunc(q, func(c numbered) bool { return strings.HasPrefix(c.name, prefix) })
}

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
