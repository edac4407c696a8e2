package node

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// fitness is what a node knows about its server, from the server's report and its mark:
// whether it may keep locks. It is guarded by the mutex of the node's peer.
type fitness struct {
	shared *Shared
	peer   *conn.Peer[Call]
	log    *slog.Logger

	server      membership.Identity // the server that answers
	quarantined quarantineCount     // the node's quarantine
	granted     grant               // the last grant from the node
	// fingerprint is the fingerprint of the membership in the node's mark, empty if it is not
	// known; before is that of the membership which that one replaced. omitted is set if
	// it is not ours: the node may have been down while it was replaced.
	fingerprint, before string
	omitted             bool
	// unmarked is why the user cannot update the mark, which a user that only looks at
	// locks need not do.
	unmarked *driver.Refusal
	lookAt   time.Time // when the mark is checked again
	// foreign is why the node may keep no lock; see standing.go and alone.go.
	foreign *driver.Refusal
	stands  Standing
	forgot  clock.Instant // until then the server may lack leases, though its mark does not say so yet
	usedBy  string        // who uses the server alone, if that is why it is not ours
	isAlone bool          // see usesAlone
	arrives bool          // an arrival was sent over this connection
	heard   bool          // and was answered
	// toldLong is the quarantine that the last arrival asked for.
	toldLong time.Duration
	// origin is that of the mark that was seen last at this address, and seen the time of the
	// last reply from its server.
	origin string
	seen   atomic.Int64 // a clock.Instant
}

// quarantineCount is a node's quarantine as this client counts it.
type quarantineCount struct {
	until clock.Instant // zero: there is none
	why   string
}

// grant identifies a grant that this client was given.
type grant struct {
	name  string // of the lock
	token uint64
	at    clock.Instant
}

const (
	// maxClockError bounds the drift of client and server clocks in a day.
	maxClockError = time.Hour
	// markPause is how long a mark that this client cannot use is left alone before it is
	// read again: an operator may have replaced it.
	markPause = time.Second
)

var (
	errQuarantineBegan = errors.New("the server went into quarantine after the connection was made")
	errEmptied         = errors.New("the server was emptied after the connection was made")
)

// refusesLocked returns why the server may not be asked to do c; nil if it may.
func (f *fitness) refusesLocked(c *script.Command) error {
	switch {
	case f.unmarked != nil && c.Script.Does(script.Takes|script.Gated):
		f.stillUnmarkedLocked()
		return f.unmarked
	case f.foreign != nil && (c.Script.Does(script.Keeps) || c.Script == script.Heal):
		f.stillForeignLocked()
		return f.foreign
	}
	return nil
}

// durable reports whether the server appends every write before it answers.
func (f *fitness) durable() string { return f.server.Durable(f.shared.Config.FsyncAlways) }

// run returns the beginning of the server's run ID; empty if it is not known.
func (f *fitness) run() string {
	f.peer.Mu.Lock()
	defer f.peer.Mu.Unlock()
	if len(f.server.RunID) < script.RunPrint {
		return ""
	}
	return f.server.RunID[:script.RunPrint]
}

func (f *fitness) setUnmarked(why *driver.Refusal) {
	f.peer.Mu.Lock()
	f.unmarked, f.lookAt = why, time.Now().Add(markPause)
	f.peer.Mu.Unlock()
}

// stillUnmarkedLocked enqueues another check of the mark if markPause has passed.
func (f *fitness) stillUnmarkedLocked() {
	if now := time.Now(); f.peer.PipeLocked() != nil && now.After(f.lookAt) {
		f.lookAt = now.Add(markPause)
		f.lookLocked()
	}
}

// countLocked begins to count a quarantine, or extends it. It never shortens it: the
// server's clock may have been set.
func (f *fitness) countLocked(found store.NodeOutcome) {
	f.quarantined.until = max(f.quarantined.until, f.shared.Config.Clock.Now().Add(found.ExpiresIn))
	var q *script.QuarantineError
	if errors.As(found.Err, &q) {
		f.quarantined.why = q.Why
	}
}

// leftLocked is how long the quarantine lasts by this client's count.
func (f *fitness) leftLocked() time.Duration {
	if f.quarantined.until == 0 {
		return 0
	}
	return max(0, f.quarantined.until.Sub(f.shared.Config.Clock.Now()))
}

// QuarantineLocked returns the quarantine by this client's count; nil if there is none.
func (f *fitness) QuarantineLocked() *script.QuarantineError {
	if left := f.leftLocked(); left > 0 {
		return &script.QuarantineError{Why: f.quarantined.why, Left: left}
	}
	return nil
}

// isCounting reports whether the node is in quarantine by this client's count.
func (f *fitness) isCounting() bool {
	f.peer.Mu.Lock()
	defer f.peer.Mu.Unlock()
	return f.leftLocked() > 0
}

// quarantineSeen handles a refusal because of a quarantine, and returns the outcome to report. If
// this client did not know of the quarantine, something has happened to the server since
// it connected: it reconnects and checks the mark. If the server was emptied, the client
// begins to count a quarantine, and loses no answer with the connection. A check over that
// connection would not do: the new mark would not say that the server is durable.
func (f *fitness) quarantineSeen(said store.NodeOutcome) store.NodeOutcome {
	var q *script.QuarantineError
	errors.As(said.Err, &q)
	f.peer.Mu.Lock()
	w, left := f.peer.PipeLocked(), f.leftLocked()
	switch {
	case left > said.ExpiresIn:
		said.ExpiresIn, said.Err = left, &script.QuarantineError{Why: f.quarantined.why, Left: left}
	case f.quarantined.until != 0:
	case q != nil && q.Why == "emptied":
		f.countLocked(said)
		if w != nil {
			f.peer.Mu.Unlock()
			w.Replace(errEmptied)
			f.peer.Mu.Lock()
		}
		f.lookLocked() // so that it connects now
	case w != nil:
		defer w.Abandon(errQuarantineBegan)
	}
	f.peer.Mu.Unlock()
	return said
}

// reopenLocked enqueues a check of the mark before c if c needs the node to be open and
// the quarantine is over by this client's count.
func (f *fitness) reopenLocked(c *script.Command) {
	if c.Script.Does(script.Gated) && f.quarantined.until != 0 && f.leftLocked() == 0 {
		f.quarantined = quarantineCount{}
		f.lookLocked()
	}
}

// saw records that the node has granted the lock of that name. A server that does not know
// the latest grant is another server, or has lost data.
func (f *fitness) saw(name string, token uint64, at clock.Instant) {
	f.peer.Mu.Lock()
	f.granted = grant{name: name, token: token, at: at}
	f.peer.Mu.Unlock()
}
