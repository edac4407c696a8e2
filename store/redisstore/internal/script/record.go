package script

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Record is the value of the key of a lock that several can hold, as readRecord.lua has it.
type Record struct {
	Kind    store.Kind
	Holders []Held // without those that have ended
}

// Held is one grant in a Record.
type Held struct {
	store.Holding
	Slots string // all that it has; see pickSlots.lua
	Made  string // the attempt that made it; see readRecord.lua
}

// Of returns the grant of owner, or nil. A lock without a record, which is nil, has none.
func (r *Record) Of(owner string) *Held {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Holders, func(h Held) bool { return h.Holder.Owner == owner })
	if i < 0 {
		return nil
	}
	return &r.Holders[i]
}

// recordOf reads the value of a lock's key and its PTTL. It returns nil if that is no record.
func recordOf(value, pttl resp.Value) *Record {
	return decodeRecord(string(value.Text), pttl.Num)
}

// decodeRecord reads the value of a key that expires after left milliseconds. The key expires together
// with the longest grant or place, whose end is in the value. So left tells the time on the server's clock.
func decodeRecord(value string, left int64) *Record {
	kind, rest, ok := strings.Cut(strings.TrimPrefix(value, " "), " ")
	if !ok || value[0] != ' ' || kind == "" {
		return nil
	}
	r := &Record{}
	if r.Kind, ok = parseKind(kind); !ok {
		return nil
	}
	queueEnds, rest, _ := strings.Cut(rest, " ")
	last, err := strconv.ParseInt(queueEnds, 10, 64)
	if err != nil {
		return nil
	}
	type span struct{ begun, ends int64 }
	var spans []span
	for rest != "" {
		words := strings.SplitN(rest, " ", 9)
		if len(words) < 9 {
			return nil
		}
		n, wrong := make([]int64, 7), false
		for i := range n {
			word := words[i]
			if i == 5 { // the slots, of which the first is the smallest
				word, _, _ = strings.Cut(word, ",")
			}
			n[i], err = strconv.ParseInt(word, 10, 64)
			wrong = wrong || err != nil || n[i] < 0
		}
		if wrong || n[0] > int64(len(words[8])) {
			return nil
		}
		h := Held{store.Holding{Holder: DecodeValue(words[8][:n[0]]), Token: fence.Token(n[1]), Weight: n[2], Slot: n[5]}, words[5], words[7]}
		h.Holder.Broken = n[6] == 1
		r.Holders, spans = append(r.Holders, h), append(spans, span{begun: n[4], ends: n[3]})
		last = max(last, n[3])
		rest = strings.TrimPrefix(words[8][n[0]:], " ")
	}
	now := last - max(left, 0)
	for i := range r.Holders {
		h, s := &r.Holders[i], spans[i]
		h.ExpiresIn = time.Duration(min(s.ends-now, mostMillis)) * time.Millisecond
		h.HeldFor = max(time.Duration(min(now-s.begun, mostMillis))*time.Millisecond, 1)
	}
	r.Holders = slices.DeleteFunc(r.Holders, func(h Held) bool { return h.ExpiresIn <= 0 })
	return r
}

// outcome is what a node with that record says to a client that wants a mutex. A semaphore
// that was resized to a single permit is free for it when the last holder has left, which
// takes at most left milliseconds.
func (r *Record) outcome(left int64) store.NodeOutcome {
	if r.Kind.IsMutex() {
		return store.NodeOutcome{Outcome: store.Taken, Holder: r.blocker(), ExpiresIn: time.Duration(left) * time.Millisecond}
	}
	return inUseBy(kindText(r.Kind), r.blocker())
}

// blocker returns the holder whose lease ends first. Of waiters the record says nothing.
func (r *Record) blocker() store.Holder {
	if len(r.Holders) == 0 {
		return store.Holder{Owner: "(waiters)"}
	}
	return slices.MinFunc(r.Holders, func(a, b Held) int { return int(a.ExpiresIn - b.ExpiresIn) }).Holder
}

// first is what a node says about the lock as far as it is about one holder.
func (r *Record) first() (store.NodeOutcome, fence.Token) {
	if len(r.Holders) == 0 {
		return store.NodeOutcome{Outcome: store.Absent}, 0
	}
	h := r.Holders[0]
	return store.NodeOutcome{Outcome: store.Taken, Holder: h.Holder, ExpiresIn: h.ExpiresIn}, h.Token
}

// Show completes the state of a lock that is held.
func (r *Record) Show(st *store.State) {
	if r != nil && st.Held {
		st.Kind, st.HeldFor = r.Kind, r.Holders[0].HeldFor
		for _, h := range r.Holders {
			st.Holders = append(st.Holders, h.Holding)
		}
	}
}

// Record returns the record of a lock in the reply of the inspect script; nil if there is none.
func (r Reply) Record() *Record {
	if v := r.Value.List; r.Outcome == store.Granted && len(v) == heldWords {
		return recordOf(v[1], v[2])
	}
	return nil
}

// quarantinedIfFree is QuarantinedOr for a lock that nobody has.
func quarantinedIfFree(said store.NodeOutcome, left, why resp.Value) store.NodeOutcome {
	if said.Outcome == store.Absent {
		return QuarantinedOr(left, why, said)
	}
	return said
}
